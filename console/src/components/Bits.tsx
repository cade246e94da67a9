/** Small pieces of text: times, sizes, badges, values to copy. */

import { useEffect, useState, type ReactNode } from 'react'
import { texts } from '#texts/components'
import css from './Bits.module.css'

export function Badge({ tone = 'neutral', children }: {
  tone?: 'neutral' | 'success' | 'warning' | 'danger'
  children: ReactNode
}) {
  return <span className={`${css.badge} ${css[tone]}`}>{children}</span>
}

const units: [Intl.RelativeTimeFormatUnit, number][] = [
  ['year', 31_536_000], ['month', 2_592_000], ['day', 86_400], ['hour', 3_600], ['minute', 60], ['second', 1],
]
const relative = new Intl.RelativeTimeFormat('en', { numeric: 'auto' })

/** Returns a time as "3 hours ago". */
export function timeAgo(at: Date, now = Date.now()): string {
  const seconds = (at.getTime() - now) / 1000
  for (const [unit, size] of units) {
    if (Math.abs(seconds) >= size) return relative.format(Math.round(seconds / size), unit)
  }

  return 'now'
}

/** A time in words, with the exact time on hover. */
export function Time({ at }: { at: string | null | undefined }) {
  if (!at) return <span className={css.none}>{texts.never}</span>

  const time = new Date(at)
  return (
    <time dateTime={at} title={time.toLocaleString(undefined, { dateStyle: 'full', timeStyle: 'long' })}>
      {timeAgo(time)}
    </time>
  )
}

/** Returns a number of bytes as "1.4 MB". */
export function formatBytes(n: number): string {
  const names = ['B', 'kB', 'MB', 'GB', 'TB']
  let i = 0
  while (n >= 1000 && i < names.length - 1) {
    n /= 1024
    i++
  }

  return `${i === 0 ? n : n.toFixed(n < 10 ? 1 : 0)} ${names[i]}`
}

/** A value with a button that copies it. secret hides it until it is asked for. */
export function Copyable({ value, secret = false, label }: { value: string; secret?: boolean; label: string }) {
  const [copied, setCopied] = useState(false)
  const [shown, setShown] = useState(!secret)

  useEffect(() => {
    if (!copied) return
    const timer = setTimeout(() => setCopied(false), 1500)
    return () => clearTimeout(timer)
  }, [copied])

  return (
    <span className={css.copyable}>
      <code>{shown ? value : '•'.repeat(24)}</code>
      {secret && (
        <button type="button" onClick={() => setShown(!shown)}>
          {shown ? texts.hide : texts.show}
        </button>
      )}
      <button type="button" aria-label={texts.copyLabel(label)}
        onClick={() => void navigator.clipboard.writeText(value).then(() => setCopied(true))}>
        {copied ? texts.copied : texts.copy}
      </button>
    </span>
  )
}

/** A block of code with a button that copies it. */
export function Code({ text, label }: { text: string; label: string }) {
  const [copied, setCopied] = useState(false)

  return (
    <div className={css.code}>
      <pre tabIndex={0} aria-label={label}>
        {text}
      </pre>
      <button type="button" aria-label={texts.copyLabel(label)}
        onClick={() => void navigator.clipboard.writeText(text).then(() => setCopied(true))}>
        {copied ? texts.copied : texts.copy}
      </button>
    </div>
  )
}
