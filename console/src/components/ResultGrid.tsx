import { useMemo, useRef, useState } from 'react'
import { useVirtualizer } from '@tanstack/react-virtual'
import { texts } from '#texts/components'
import { Code } from './Bits'
import { Dialog } from './Dialog'
import { jsonOf, textOf, type Exact } from './exact'
import type { Result } from './runSQL'
import css from './ResultGrid.module.css'

const rowHeight = 28
const charWidth = 8
const padding = 24
const [narrowest, widest] = [64, 380]
const sampled = 100 // rows that the widths are taken from
const longest = 300 // characters of a cell that are shown
const numeric = /^(smallint|integer|bigint|numeric|real|double precision|oid)/

/** The rows of a result, drawn as far as they are in view. */
export function ResultGrid({ result }: { result: Result }) {
  const frame = useRef<HTMLDivElement>(null)
  const [opened, setOpened] = useState<{ column: string; value: Exact } | null>(null)
  const widths = useMemo(() => widthsOf(result), [result])
  const rows = useVirtualizer({
    count: result.rows.length, getScrollElement: () => frame.current, estimateSize: () => rowHeight, overscan: 12,
  })
  const columns = useVirtualizer({
    horizontal: true, count: result.columns.length, getScrollElement: () => frame.current,
    estimateSize: (i) => widths[i] ?? narrowest, overscan: 4,
  })
  const across = columns.getVirtualItems()
  const width = columns.getTotalSize()

  return (
    <div className={css.frame} ref={frame} tabIndex={0} role="table" aria-label={texts.result}
      aria-rowcount={result.rows.length + 1} aria-colcount={result.columns.length}>
      <div className={css.head} role="row" style={{ width, height: rowHeight }}>
        {across.map((c) => (
          <div key={c.index} role="columnheader" className={css.cell} title={result.columns[c.index]?.type}
            style={{ left: c.start, width: c.size }}>
            {result.columns[c.index]?.name}
          </div>
        ))}
      </div>
      <div className={css.body} role="rowgroup" style={{ width, height: rows.getTotalSize() }}>
        {rows.getVirtualItems().map((r) => (
          <div key={r.index} role="row" aria-rowindex={r.index + 2} className={css.row}
            style={{ top: r.start, height: rowHeight, width }}>
            {across.map((c) => (
              <Cell key={c.index} value={result.rows[r.index]?.[c.index] ?? null} left={c.start} width={c.size}
                isNumber={numeric.test(result.columns[c.index]?.type ?? '')}
                onOpen={(value) => setOpened({ column: result.columns[c.index]?.name ?? '', value })} />
            ))}
          </div>
        ))}
      </div>
      {opened !== null && (
        <Dialog title={opened.column} open wide onClose={() => setOpened(null)}>
          <Code label={texts.value} text={typeof opened.value === 'object'
            ? jsonOf(opened.value, '\n') : (textOf(opened.value) ?? 'null')} />
        </Dialog>
      )}
    </div>
  )
}

function Cell({ value, left, width, isNumber, onOpen }: {
  value: Exact
  left: number
  width: number
  isNumber: boolean
  onOpen: (value: Exact) => void
}) {
  const text = textOf(value)
  const long = text !== null && (text.length * charWidth + padding > width || text.includes('\n'))

  return (
    <div role="cell" className={`${css.cell} ${isNumber ? css.number : ''}`} style={{ left, width }}>
      {text === null ? <span className={css.null}>{texts.null}</span>
        : long ? <button type="button" onClick={() => onOpen(value)}>{text.slice(0, longest)}</button> : text}
    </div>
  )
}

function widthsOf(result: Result): number[] {
  return result.columns.map((column, i) => {
    let chars = column.name.length
    for (const row of result.rows.slice(0, sampled)) chars = Math.max(chars, textOf(row[i] ?? null)?.length ?? 4)

    return Math.min(widest, Math.max(narrowest, chars * charWidth + padding))
  })
}
