import type { ButtonHTMLAttributes } from 'react'
import { Link, type LinkProps } from '@tanstack/react-router'
import { useRefusal, type Operation } from './rights'
import css from './Button.module.css'

type Look = 'primary' | 'plain' | 'quiet' | 'danger'

interface Props extends ButtonHTMLAttributes<HTMLButtonElement> {
  look?: Look
  busy?: boolean
  needs?: Operation | undefined // without the role for it the button says so instead of acting
}

export function Button({ look = 'plain', busy = false, disabled, needs, className = '', ...rest }: Props) {
  const refusal = useRefusal(needs)
  const name = `${css.button} ${css[look]} ${className}`
  if (refusal !== undefined) return <Refused {...rest} className={name} title={refusal} />

  return <button type="button" {...rest} className={name} disabled={disabled || busy} aria-busy={busy || undefined} />
}

/** Keeps its place in the order of focus, so that everybody learns why it does nothing. */
function Refused({ onClick: _, ...rest }: ButtonHTMLAttributes<HTMLButtonElement>) {
  return <button {...rest} type="button" aria-disabled="true" />
}

/** A link that looks like a button. */
export function ButtonLink({ look = 'plain', needs, ...rest }: LinkProps & { look?: Look; needs?: Operation }) {
  if (useRefusal(needs) !== undefined) return null // it would lead to a refusal

  return <Link {...rest} className={`${css.button} ${css[look]}`} />
}

/** A button with a symbol only; label names it for screen readers and on hover. */
export function IconButton({ label, className = '', needs, ...rest }: Omit<Props, 'look'> & { label: string }) {
  const refusal = useRefusal(needs)
  const name = `${css.icon} ${className}`
  if (refusal !== undefined) return <Refused {...rest} className={name} aria-label={label} title={refusal} />

  return <button type="button" {...rest} aria-label={label} title={label} className={name} />
}
