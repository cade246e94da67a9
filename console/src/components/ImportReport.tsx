import { Badge } from './Bits'
import { Table } from './Table'
import type { Imported } from './importFile'
import css from './ImportDialog.module.css'

const shown = 100 // rejected lines

/** What the server made of a file: columns and types, notes, and the rows that it rejects. */
export function ImportReport({ tried, lines }: { tried: Imported | null; lines: Imported['rejectedLines'] }) {
  return (
    <div className={css.report} aria-live="polite">
      {tried !== null && (
        <>
          <p>
            <Badge tone={tried.rejected === 0 ? 'success' : 'warning'}>
              {tried.rows.toLocaleString()} rows fit{tried.rejected > 0 && `, ${tried.rejected.toLocaleString()} do not`}
            </Badge>{' '}
            Nothing is stored yet.
          </p>
          <Table label="Columns" rows={tried.columns} keyOf={(c) => c.name} columns={[
            { title: 'In the file', cell: (c) => c.header || '—' },
            { title: 'Column', cell: (c) => <code>{c.name}</code> },
            ...(tried.columns.some((c) => c.type !== '') ? [{ title: 'Type', cell: (c: { type: string }) => <code>{c.type}</code> }] : []),
          ]} />
          {tried.notes.length > 0 && (
            <ul className={css.notes} aria-label="Notes">
              {tried.notes.map((n, i) => <li key={i}>{n.column !== null && <code>{n.column}</code>} {n.message}</li>)}
            </ul>
          )}
        </>
      )}
      {lines.length > 0 && (
        <Table label="Rejected rows" rows={lines.slice(0, shown)} keyOf={(l) => `${l.line}:${l.column}:${l.code}`} columns={[
          { title: 'Line', cell: (l) => l.line, align: 'right' },
          { title: 'Column', cell: (l) => l.column ?? '' },
          { title: 'Why it is rejected', cell: (l) => l.message },
        ]} />
      )}
      {lines.length > shown && <p>{(lines.length - shown).toLocaleString()} more lines are rejected.</p>}
    </div>
  )
}
