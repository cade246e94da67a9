import type { ReactNode } from 'react'
import { texts } from '#texts/components'
import css from './Table.module.css'

export interface Column<T> {
  title: string
  cell: (row: T) => ReactNode
  align?: 'right'
  narrow?: boolean // hidden on phones
}

/** A plain list of records, at most a page long. */
export function Table<T>({ label, rows, columns, keyOf, onOpen }: {
  label: string
  rows: T[]
  columns: Column<T>[]
  keyOf: (row: T) => string
  onOpen?: (row: T) => void
}) {
  return (
    <div className={css.scroll} tabIndex={0} role="region" aria-label={label}>
      <table className={css.table}>
        <thead>
          <tr>
            {columns.map((c) => (
              <th key={c.title} scope="col" className={cellClass(c)}>
                {c.title !== '' ? c.title : <span className={css.hidden}>{texts.actions}</span>}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={keyOf(row)} className={onOpen && css.link} onClick={onOpen && (() => onOpen(row))}>
              {columns.map((c) => (
                <td key={c.title} className={cellClass(c)}>
                  {c.cell(row)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}

function cellClass<T>(c: Column<T>): string {
  return `${c.align === 'right' ? css.right : ''} ${c.narrow ? css.wideOnly : ''}`
}

/** Pages through a list. */
export function Pager({ page, pages, total, onPage }: {
  page: number
  pages: number
  total: number
  onPage: (page: number) => void
}) {
  if (pages <= 1) return null

  return (
    <nav className={css.pager} aria-label={texts.pages}>
      <button type="button" disabled={page <= 1} onClick={() => onPage(page - 1)}>
        {texts.previous}
      </button>
      <span>
        {texts.pageOfPagesTotalIn(page, pages, total.toLocaleString())}
      </span>
      <button type="button" disabled={page >= pages} onClick={() => onPage(page + 1)}>
        {texts.next}
      </button>
    </nav>
  )
}
