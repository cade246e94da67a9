import { useEffect, type ReactNode } from 'react'
import css from './Page.module.css'

interface Props {
  title: string
  lead?: ReactNode // a sentence below the title
  actions?: ReactNode
  children: ReactNode
  full?: boolean // uses the whole width and height, as a grid does
}

/** A screen: its title, its actions and its content. */
export function Page({ title, lead, actions, children, full = false }: Props) {
  useEffect(() => {
    document.title = `${title} · Socle`
  }, [title])

  return (
    <div className={full ? css.full : css.page}>
      <header className={css.head}>
        <div>
          <h1>{title}</h1>
          {lead !== undefined && <p className={css.lead}>{lead}</p>}
        </div>
        {actions !== undefined && <div className={css.actions}>{actions}</div>}
      </header>
      {children}
    </div>
  )
}

export function Card({ title, lead, actions, children }: {
  title?: string
  lead?: ReactNode
  actions?: ReactNode
  children: ReactNode
}) {
  return (
    <section className={css.card}>
      {(title !== undefined || actions !== undefined) && (
        <header className={css.cardHead}>
          <div>
            {title !== undefined && <h2>{title}</h2>}
            {lead !== undefined && <p className={css.lead}>{lead}</p>}
          </div>
          {actions !== undefined && <div className={css.actions}>{actions}</div>}
        </header>
      )}
      {children}
    </section>
  )
}

/** Fields one below the other. */
export function Stack({ children }: { children: ReactNode }) {
  return <div className={css.stack}>{children}</div>
}

/** Controls side by side. */
export function Row({ children }: { children: ReactNode }) {
  return <div className={css.row}>{children}</div>
}
