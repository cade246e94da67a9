import type { ReactNode } from 'react'
import css from './Details.module.css'

/** Names and values of one record. Entries with undefined are left out. */
export function Details({ entries }: { entries: [name: string, value: ReactNode][] }) {
  return (
    <dl className={css.list}>
      {entries.filter(([, value]) => value !== undefined).map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  )
}
