import { useRef } from 'react'
import { texts } from '#texts/rows'
import { Menu, type MenuItem } from '../../components/Menu'
import type { Column } from './types'
import css from './HeadCell.module.css'

/** A column's header: its name sorts, its menu does the rest, its edge changes the width. */
export function HeadCell({ column, sort, place, width, onSort, onWidth, items }: {
  column: Column
  sort: 'ascending' | 'descending' | 'none'
  place: number // among several sorted columns, from 1; 0 if it is the only one
  width: number
  onSort: (adds: boolean) => void
  onWidth: (width: number) => void
  items: MenuItem[]
}) {
  const title = [
    `${column.name}: ${column.type}`,
    column.primary && 'primary key',
    column.reference && texts.refersToTable(column.reference.table),
    column.comment,
  ].filter(Boolean).join('\n')
  const arrow = { ascending: '↑', descending: '↓', none: '' }[sort]

  return (
    <>
      <div className={css.head}>
        <button type="button" className={css.name} title={title} onClick={(e) => onSort(e.shiftKey)}>
          <span className={css.text}>
            {column.primary && <abbr title={texts.primaryKey} className={css.key}>{texts.pk}</abbr>}
            {column.name}
            {arrow !== '' && <span className={css.arrow} aria-hidden="true"> {arrow}{place > 0 && place}</span>}
          </span>
          <span className={css.type}>{column.reference ? `→ ${column.reference.table.replace(/^public\./, '')}` : column.type}</span>
        </button>
        <Menu label={texts.columnName(column.name)} trigger="⋮" items={items} />
      </div>
      <ResizeEdge width={width} onWidth={onWidth} />
    </>
  )
}

function ResizeEdge({ width, onWidth }: { width: number; onWidth: (width: number) => void }) {
  const start = useRef<{ x: number; width: number } | null>(null)

  return (
    <div className={css.edge} aria-hidden="true"
      onPointerDown={(e) => {
        e.currentTarget.setPointerCapture(e.pointerId)
        start.current = { x: e.clientX, width }
      }}
      onPointerMove={(e) => {
        if (start.current) onWidth(Math.max(60, Math.round(start.current.width + e.clientX - start.current.x)))
      }}
      onPointerUp={() => {
        start.current = null
      }} />
  )
}
