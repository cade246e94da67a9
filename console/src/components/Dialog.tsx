import { useState, type FormEvent, type ReactNode } from 'react'
import { Dialog as Base } from '@base-ui/react/dialog'
import { texts } from '#texts/components'
import { Button, IconButton } from './Button'
import { TextField } from './Field'
import { FailureNote } from './States'
import css from './Dialog.module.css'

interface Props {
  title: string
  open: boolean
  onClose: () => void
  children: ReactNode
  side?: boolean // a sheet at the right edge
  wide?: boolean
}

export function Dialog({ title, open, onClose, children, side = false, wide = false }: Props) {
  return (
    <Base.Root open={open} onOpenChange={(next) => !next && onClose()}>
      <Base.Portal>
        <Base.Backdrop className={css.backdrop} />
        <Base.Popup className={`${side ? css.sheet : css.popup} ${wide ? css.wide : ''}`}>
          <header className={css.head}>
            <Base.Title render={<h2 />}>{title}</Base.Title>
            <IconButton label={texts.close} onClick={onClose}>
              ✕
            </IconButton>
          </header>
          <div className={css.body}>{children}</div>
        </Base.Popup>
      </Base.Portal>
    </Base.Root>
  )
}

interface FormProps extends Props {
  action: string // the submit button's text
  cancel?: string
  stays?: boolean // the caller closes it
  danger?: boolean
  /** Does the work; the dialog shows what it throws, and closes otherwise. */
  onSubmit: () => Promise<unknown>
  disabled?: boolean
}

/** A dialog with a form. It stays open, with all that was typed, if the work fails. */
export function FormDialog({
  action, cancel = texts.cancel, stays = false, danger = false, onSubmit, disabled = false, children, ...dialog
}: FormProps) {
  const [busy, setBusy] = useState(false)
  const [failure, setFailure] = useState<unknown>(null)

  async function submit(e: FormEvent) {
    e.preventDefault()
    e.stopPropagation() // a dialog inside a form
    setBusy(true)
    setFailure(null)

    try {
      await onSubmit()
      if (!stays) dialog.onClose()
    } catch (error) {
      setFailure(error)
    } finally {
      setBusy(false)
    }
  }

  return (
    <Dialog {...dialog}>
      <form className={css.form} onSubmit={submit}>
        {children}
        {failure !== null && <FailureNote error={failure} />}
        <footer className={css.foot}>
          <Button onClick={dialog.onClose}>{cancel}</Button>
          <Button type="submit" look={danger ? 'danger' : 'primary'} busy={busy} disabled={disabled}>
            {action}
          </Button>
        </footer>
      </form>
    </Dialog>
  )
}

/** Asks before a destructive act, in words that say what is lost. With name, that must be typed. */
export function Confirm({ name, children, ...rest }: Omit<FormProps, 'danger' | 'disabled'> & { name?: string }) {
  const [typed, setTyped] = useState('')

  return (
    <FormDialog {...rest} danger disabled={name !== undefined && typed !== name}>
      <div>{children}</div>
      {name !== undefined && (
        <TextField label={texts.typeNameToConfirm(name)} value={typed} autoComplete="off"
          onChange={(e) => setTyped(e.target.value)} />
      )}
    </FormDialog>
  )
}
