import { useEffect, useState, type FormEvent, type ReactNode } from 'react'
import { texts } from '#texts/access'
import { Button } from '../../components/Button'
import { FailureNote } from '../../components/States'
import css from './Frame.module.css'

/** The card in the middle of a screen before sign-in. */
export function Frame({ title, lead, children }: { title: string; lead: ReactNode; children: ReactNode }) {
  useEffect(() => {
    document.title = `${title} · Socle`
  }, [title])

  return (
    <main className={css.frame}>
      <div className={css.card}>
        <header className={css.brand}>
          <p className={css.name}>{texts.socle}</p>
          <h1>{title}</h1>
          <p className={css.lead}>{lead}</p>
        </header>
        {children}
      </div>
    </main>
  )
}

export const about = texts.aBackendOnPostgreSQLDatabase

/** A form that keeps what was typed when the request fails. onFailure may take the failure over. */
export function AccessForm({ action, onSubmit, onFailure, children }: {
  action: string
  onSubmit: () => Promise<void>
  onFailure?: (error: unknown) => boolean
  children: ReactNode
}) {
  const [busy, setBusy] = useState(false)
  const [failure, setFailure] = useState<unknown>(null)

  async function submit(e: FormEvent) {
    e.preventDefault()
    setBusy(true)
    setFailure(null)

    try {
      await onSubmit()
    } catch (error) {
      if (!onFailure?.(error)) setFailure(error)
    } finally {
      setBusy(false)
    }
  }

  return (
    <form className={css.form} onSubmit={(e) => void submit(e)}>
      {children}
      {failure !== null && <FailureNote error={failure} />}
      <Button type="submit" look="primary" busy={busy}>
        {action}
      </Button>
    </form>
  )
}

/** Links below a form. */
export function FrameLinks({ children }: { children: ReactNode }) {
  return <nav className={css.links} aria-label={texts.otherWaysIn}>{children}</nav>
}

/** What only some people need. */
export function More({ title, open = false, children }: { title: string; open?: boolean; children: ReactNode }) {
  return (
    <details className={css.more} open={open}>
      <summary>{title}</summary>
      <div>{children}</div>
    </details>
  )
}
