import { useId, type InputHTMLAttributes, type ReactNode, type SelectHTMLAttributes, type TextareaHTMLAttributes } from 'react'
import css from './Field.module.css'

interface Common {
  label: string
  hint?: ReactNode
  error?: string | undefined
}

interface Slot {
  id: string
  'aria-describedby'?: string
  'aria-invalid'?: true
}

/** A label with a control, its hint and its failure. */
export function Field({ label, hint, error, children }: Common & { children: (slot: Slot) => ReactNode }) {
  const id = useId()
  const notes = [hint !== undefined && `${id}-hint`, error !== undefined && `${id}-error`].filter(Boolean).join(' ')

  return (
    <div className={css.field}>
      <label htmlFor={id}>{label}</label>
      {children({
        id,
        ...(notes !== '' && { 'aria-describedby': notes }),
        ...(error !== undefined && { 'aria-invalid': true as const }),
      })}
      {hint !== undefined && (
        <p id={`${id}-hint`} className={css.hint}>
          {hint}
        </p>
      )}
      {error !== undefined && (
        <p id={`${id}-error`} className={css.error} role="alert">
          {error}
        </p>
      )}
    </div>
  )
}

export function TextField({ label, hint, error, ...rest }: Common & InputHTMLAttributes<HTMLInputElement>) {
  return (
    <Field label={label} hint={hint} error={error}>
      {(slot) => <input {...rest} {...slot} className={css.input} />}
    </Field>
  )
}

export function TextArea({ label, hint, error, ...rest }: Common & TextareaHTMLAttributes<HTMLTextAreaElement>) {
  return (
    <Field label={label} hint={hint} error={error}>
      {(slot) => <textarea rows={4} {...rest} {...slot} className={`${css.input} ${css.area}`} />}
    </Field>
  )
}

export function SelectField({ label, hint, error, children, ...rest }: Common & SelectHTMLAttributes<HTMLSelectElement>) {
  return (
    <Field label={label} hint={hint} error={error}>
      {(slot) => (
        <select {...rest} {...slot} className={css.input}>
          {children}
        </select>
      )}
    </Field>
  )
}

export function CheckField({ label, hint, ...rest }: Omit<Common, 'error'> & InputHTMLAttributes<HTMLInputElement>) {
  const id = useId()

  return (
    <div className={css.check}>
      <input type="checkbox" {...rest} id={id} {...(hint !== undefined && { 'aria-describedby': `${id}-hint` })} />
      <div>
        <label htmlFor={id}>{label}</label>
        {hint !== undefined && (
          <p id={`${id}-hint`} className={css.hint}>
            {hint}
          </p>
        )}
      </div>
    </div>
  )
}

/** The class of a bare input, for toolbars and cells that label it themselves. */
export const inputClass = css.input ?? ''
