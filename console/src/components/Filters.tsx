import { useEffect, useRef, useState, type ReactNode } from 'react'
import { useNavigate, useParams, useSearch } from '@tanstack/react-router'
import { TextField } from './Field'
import css from './Filters.module.css'

const typingPause = 250 // ms

/** Several pieces of the URL's query that change together. "" stands for an absent one. */
export function useFilters<N extends string>(...names: N[]): [Record<N, string>, (patch: Partial<Record<N, string>>) => void] {
  const search = useSearch({ strict: false }) as Record<string, unknown>
  const navigate = useNavigate()
  const values = Object.fromEntries(names.map((n) => [n, search[n] === undefined ? '' : String(search[n])])) as Record<N, string>

  return [values, (patch) => {
    void navigate({
      to: '.',
      replace: true,
      search: ((former: Record<string, unknown>) => {
        const next = Object.entries({ ...former, ...patch }).filter(([, v]) => v !== '' && v !== undefined)
        return Object.fromEntries(next)
      }) as never,
    })
  }]
}

/** The project of the screen's path. */
export function useProject(): string {
  return (useParams({ strict: false }) as { project: string }).project
}

/** Fields above a list that narrow it down. */
export function FilterBar({ children }: { children: ReactNode }) {
  return (
    <div className={css.bar} role="search">
      {children}
    </div>
  )
}

/** A text filter that applies shortly after the last key. */
export function FilterField({ label, value, onChange, placeholder, type = 'search' }: {
  label: string
  value: string
  onChange: (next: string) => void
  placeholder?: string
  type?: 'search' | 'date' | 'datetime-local'
}) {
  const [typed, setTyped] = useState(value)
  const sent = useRef(value)

  useEffect(() => {
    if (value !== sent.current) {
      sent.current = value
      setTyped(value) // changed elsewhere, such as by Back
    }
  }, [value])

  useEffect(() => {
    if (typed === sent.current) return
    const timer = setTimeout(() => {
      sent.current = typed
      onChange(typed)
    }, typingPause)
    return () => clearTimeout(timer)
  })

  return <TextField label={label} type={type} value={typed} placeholder={placeholder} onChange={(e) => setTyped(e.target.value)} />
}
