import { texts } from '#texts/components'
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
              {texts.rowsFitRejected(tried.rows.toLocaleString(), tried.rejected > 0 && texts.rejectedDoNot(tried.rejected.toLocaleString()))}
            </Badge>{texts.nothingIsStoredYet}
          </p>
          <Table label={texts.columns} rows={tried.columns} keyOf={(c) => c.name} columns={[
            { title: texts.inTheFile, cell: (c) => c.header || '—' },
            { title: texts.column, cell: (c) => <code>{c.name}</code> },
            ...(tried.columns.some((c) => c.type !== '') ? [{ title: texts.type, cell: (c: { type: string }) => <code>{c.type}</code> }] : []),
          ]} />
          {tried.notes.length > 0 && (
            <ul className={css.notes} aria-label={texts.notes}>
              {tried.notes.map((n, i) => <li key={i}>{n.column !== null && <code>{n.column}</code>} {n.message}</li>)}
            </ul>
          )}
        </>
      )}
      {lines.length > 0 && (
        <Table label={texts.rejectedRows} rows={lines.slice(0, shown)} keyOf={(l) => `${l.line}:${l.column}:${l.code}`} columns={[
          { title: texts.line, cell: (l) => l.line, align: 'right' },
          { title: texts.column, cell: (l) => l.column ?? '' },
          { title: texts.whyItIsRejected, cell: (l) => l.message },
        ]} />
      )}
      {lines.length > shown && <p>{texts.countMoreLinesAreRejected((lines.length - shown).toLocaleString())}</p>}
    </div>
  )
}
