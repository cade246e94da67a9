import { memo } from 'react'
import { texts } from '#texts/rows'
import { shown, isLink } from './display'
import { isNull, textOf, type Raw, type Row } from './json'
import type { Column } from './types'
import css from './Grid.module.css'

export const rowHeight = 32 // px
export const gutter = 64 // px, for the checkbox and the button that opens a row

export interface Placed {
  column: Column
  index: number // among all shown columns, from 0
  width: number
  left: number | null // of a pinned column
}

interface Props {
  id: string // prefix of the cells' ids
  index: number // from 0
  row: Row | undefined
  top: number
  pinned: Placed[]
  free: Placed[]
  space: number // before the first free cell
  activeColumn: number | null
  selected: boolean
  failed: string // names of columns whose typed values are not saved, one a line
  saving: string
  editable: boolean
}

/** One row. The grid listens for its cells' events. */
export const GridRow = memo(function GridRow(props: Props) {
  const { id, index, row, top, pinned, free, space, activeColumn, selected, failed, saving, editable } = props
  const failedNames = failed === '' ? [] : failed.split('\n')
  const savingNames = saving === '' ? [] : saving.split('\n')
  const cell = (p: Placed) => (
    <Cell key={p.column.name} id={`${id}-${index}-${p.index}`} placed={p} raw={row?.[p.column.name]} loading={row === undefined}
      active={activeColumn === p.index} failed={failedNames.includes(p.column.name)} editable={editable}
      saving={savingNames.includes(p.column.name)} row={index} />
  )

  return (
    <div role="row" aria-rowindex={index + 2} aria-selected={selected} className={css.row}
      style={{ transform: `translateY(${top}px)`, height: rowHeight }}>
      <div role="gridcell" aria-colindex={1} className={css.gutter} style={{ width: gutter }}>
        {row !== undefined && (
          <>
            <input type="checkbox" data-act="select" data-row={index} checked={selected} readOnly tabIndex={-1}
              aria-label={texts.selectRowIndex(index + 1)} />
            <button type="button" data-act="open" data-row={index} tabIndex={-1} className={css.open}
              aria-label={texts.openRowIndex(index + 1)} title={texts.openTheRowShiftEnter}>⤢</button>
          </>
        )}
      </div>
      {pinned.map(cell)}
      <div style={{ width: space, flex: 'none' }} />
      {free.map(cell)}
    </div>
  )
})

function Cell({ id, row, placed, raw, loading, active, failed, saving, editable }: {
  id: string
  row: number
  placed: Placed
  raw: Raw | undefined
  loading: boolean
  active: boolean
  failed: boolean
  saving: boolean
  editable: boolean
}) {
  const { column, width, left } = placed
  const { text, look } = loading ? { text: '', look: 'plain' as const } : shown(raw, column.kind)
  const names = [css.cell, css[look], left !== null && css.pinned, active && css.active, failed && css.failed, saving && css.saving]
  const hasPeek = column.reference !== null && !isNull(raw)
  const link = look === 'plain' && column.kind === 'text' && isLink(text) ? textOf(raw ?? '') : ''

  return (
    <div role="gridcell" id={id} aria-colindex={placed.index + 2} aria-readonly={!editable} aria-invalid={failed || undefined}
      className={names.filter(Boolean).join(' ')} data-row={row} data-column={placed.index}
      style={{ width, ...(left !== null && { left }) }}>
      {loading ? <span className={css.bar} /> : <span className={css.value}>{text}</span>}
      {hasPeek && (
        <button type="button" tabIndex={-1} data-act="peek" data-row={row} data-column={placed.index} className={css.peek}
          aria-label={texts.showTheRowOfTable(column.reference?.table ?? '')} title={texts.showTheReferencedRowAlt}>→</button>
      )}
      {link !== '' && (
        <a href={link} target="_blank" rel="noopener noreferrer" tabIndex={-1} className={css.peek}
          aria-label={texts.openTheAddressInA}>↗</a>
      )}
    </div>
  )
}

