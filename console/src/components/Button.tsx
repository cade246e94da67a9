import type { ButtonHTMLAttributes } from 'react'
import { Link, type LinkProps } from '@tanstack/react-router'
import css from './Button.module.css'

type Look = 'primary' | 'plain' | 'quiet' | 'danger'

interface Props extends ButtonHTMLAttributes<HTMLButtonElement> {
  look?: Look
  busy?: boolean
}

export function Button({ look = 'plain', busy = false, disabled, className = '', ...rest }: Props) {
  return (
    <button
      type="button"
      {...rest}
      className={`${css.button} ${css[look]} ${className}`}
      disabled={disabled || busy}
      aria-busy={busy || undefined}
    />
  )
}

/** A link that looks like a button. */
export function ButtonLink({ look = 'plain', ...rest }: LinkProps & { look?: Look }) {
  return <Link {...rest} className={`${css.button} ${css[look]}`} />
}

/** A button with a symbol only; label names it for screen readers and on hover. */
export function IconButton({ label, className = '', ...rest }: Omit<Props, 'look'> & { label: string }) {
  return <button type="button" {...rest} aria-label={label} title={label} className={`${css.icon} ${className}`} />
}
