import { memo, useEffect, useMemo, useRef, type MouseEvent, type ReactNode, type RefObject } from 'react'
import { useVirtualizer } from '@tanstack/react-virtual'
import { texts } from '#texts/rows'
import { GridRow, gutter, rowHeight, type Placed } from './GridRow'
import { scrolledTo, useGridKeys, type Place } from './keys'
import type { Arranged } from './layout'
import type { Pages } from './pages'
import type { Column } from './types'
import css from './Grid.module.css'

const headHeight = 46 // px

export interface GridEvents {
  onPlace: (place: Place) => void
  onEdit: (place: Place, typed?: string) => void
  onOpen: (index: number) => void
  onPeek: (place: Place) => void
  onToggle: (index: number, range: boolean) => void
  onToggleAll: () => void
  onCopy: (place: Place) => void
}

interface Props extends GridEvents {
  label: string
  id: string
  arranged: Arranged
  pages: Pages
  from: number // number of the first row of this window
  count: number // rows of this window
  onRange: (first: number, last: number) => void
  place: Place | null
  isSelected: (index: number) => boolean
  allSelected: boolean
  failedOf: (index: number) => string
  savingOf: (index: number) => string
  editable: boolean
  head: (column: Column, index: number) => ReactNode
  sortOf: (column: Column) => 'ascending' | 'descending' | 'none'
  children?: ReactNode // below the rows
}

/** A table's rows, of which only those in sight are in the page. */
export function Grid(props: Props) {
  const { arranged, pages, from, count, onRange, place } = props
  const scroll = useRef<HTMLDivElement>(null)
  const { pinned, pinnedWidth } = usePinned(arranged)
  const rows = useVirtualizer({
    count, getScrollElement: () => scroll.current, estimateSize: () => rowHeight, overscan: 8,
  })
  const columns = useVirtualizer({
    count: arranged.free.length, horizontal: true, getScrollElement: () => scroll.current, overscan: 2,
    estimateSize: (i) => arranged.widthOf(arranged.free[i]!), paddingStart: pinnedWidth,
  })
  const layoutKey = arranged.free.map((c) => `${c.name}:${arranged.widthOf(c)}`).join('|')
  useEffect(() => columns.measure(), [layoutKey, pinnedWidth, columns])

  const items = rows.getVirtualItems()
  useRange(from + (items[0]?.index ?? 0), from + (items.at(-1)?.index ?? 40), onRange)
  useVisible(scroll, place, props, pinnedWidth)

  const seen = columns.getVirtualItems()
  const free = useMemo(() => seen.flatMap((item): Placed[] => {
    const column = arranged.free[item.index]
    return column ? [{ column, index: pinned.length + item.index, width: item.size, left: null }] : []
  }), [seen, arranged.free, pinned.length])
  const space = Math.max(0, (seen[0]?.start ?? pinnedWidth) - pinnedWidth)
  const width = columns.getTotalSize()
  const columnCount = arranged.pinned.length + arranged.free.length
  const onKeyDown = useGridKeys({ ...props, columnCount, last: from + count - 1, first: from })
  const onClick = (e: MouseEvent) => handle(e, props)

  return (
    <div ref={scroll} role="grid" aria-label={props.label} aria-rowcount={pages.exact ? pages.count + 1 : -1}
      aria-colcount={columnCount + 1} aria-multiselectable="true" tabIndex={0} className={css.grid} data-grid=""
      aria-activedescendant={place ? `${props.id}-${place.index}-${place.column}` : undefined}
      onFocus={(e) => e.target === e.currentTarget && place === null && props.onPlace({ index: from, column: 0 })}
      onKeyDown={onKeyDown} onClick={onClick} onDoubleClick={(e) => {
        const at = placeOf(e)
        if (at && !(e.target as Element).closest('[data-act], a')) props.onEdit(at)
      }}>
      <HeadRow width={width} space={space} pinned={pinned} free={free} head={props.head} sortOf={props.sortOf}
        allSelected={props.allSelected} onToggleAll={props.onToggleAll} />
      <div role="rowgroup" className={css.body} style={{ width, height: rows.getTotalSize() }}>
        {items.map((item) => (
          <GridRow key={item.key} id={props.id} index={from + item.index} row={pages.rowAt(from + item.index)} top={item.start}
            pinned={pinned} free={free} space={space} editable={props.editable}
            activeColumn={place?.index === from + item.index ? place.column : null}
            selected={props.isSelected(from + item.index)} failed={props.failedOf(from + item.index)}
            saving={props.savingOf(from + item.index)} />
        ))}
      </div>
      {props.children}
    </div>
  )
}

type HeadProps = Pick<Props, 'head' | 'sortOf' | 'allSelected' | 'onToggleAll'> & {
  width: number
  space: number
  pinned: Placed[]
  free: Placed[]
}

/** The column headers; vertical scrolling leaves them alone. */
const HeadRow = memo(function HeadRow({ width, space, pinned, free, head, sortOf, allSelected, onToggleAll }: HeadProps) {
  return (
    <div role="row" aria-rowindex={1} className={css.head} style={{ width, height: headHeight }}>
      <div role="columnheader" aria-colindex={1} className={css.gutter} style={{ width: gutter }}>
        <input type="checkbox" checked={allSelected} aria-label={texts.selectTheLoadedRows} onChange={onToggleAll} />
      </div>
      {pinned.map((p) => <Head key={p.column.name} placed={p} head={head} sortOf={sortOf} />)}
      <div style={{ width: space, flex: 'none' }} />
      {free.map((p) => <Head key={p.column.name} placed={p} head={head} sortOf={sortOf} />)}
    </div>
  )
})

function Head({ placed, head, sortOf }: Pick<Props, 'head' | 'sortOf'> & { placed: Placed }) {
  return (
    <div role="columnheader" aria-colindex={placed.index + 2} aria-sort={sortOf(placed.column)}
      className={`${css.headCell} ${placed.left !== null ? css.pinned : ''}`}
      style={{ width: placed.width, ...(placed.left !== null && { left: placed.left }) }}>
      {head(placed.column, placed.index)}
    </div>
  )
}

function usePinned(arranged: Arranged) {
  return useMemo(() => {
    let left = gutter
    const pinned = arranged.pinned.map((column, index): Placed => {
      const placed = { column, index, width: arranged.widthOf(column), left }
      left += placed.width
      return placed
    })
    return { pinned, pinnedWidth: left }
  }, [arranged])
}

const settled = 60 // ms without scrolling, before rows are asked for

function useRange(first: number, last: number, onRange: (first: number, last: number) => void) {
  useEffect(() => {
    const timer = setTimeout(() => onRange(first, last), settled)
    return () => clearTimeout(timer)
  }, [first, last, onRange])
}

/** Scrolls the active cell into sight when it changes. */
function useVisible(scroll: RefObject<HTMLDivElement | null>, place: Place | null, { arranged, from, count }: Props, pinnedWidth: number) {
  const index = place?.index
  const column = place?.column
  useEffect(() => {
    const element = scroll.current
    if (element === null || index === undefined || column === undefined || index < from || index >= from + count) return
    element.scrollTop = scrolledTo((index - from) * rowHeight, rowHeight, element.scrollTop, element.clientHeight - headHeight)

    const before = arranged.free.slice(0, Math.max(0, column - arranged.pinned.length))
    const target = arranged.free[column - arranged.pinned.length]
    if (target === undefined) return
    const left = before.reduce((sum, c) => sum + arranged.widthOf(c), 0)
    element.scrollLeft = scrolledTo(left, arranged.widthOf(target), element.scrollLeft, element.clientWidth - pinnedWidth)
  }, [index, column, from, count > 0])
}

function placeOf(e: MouseEvent): Place | null {
  const cell = (e.target as Element).closest<HTMLElement>('[data-row][data-column]')
  return cell === null ? null : { index: Number(cell.dataset.row), column: Number(cell.dataset.column) }
}

function handle(e: MouseEvent, on: GridEvents) {
  const act = (e.target as Element).closest<HTMLElement>('[data-act]')
  const at = placeOf(e)
  switch (act?.dataset.act) {
    case 'select': return on.onToggle(Number(act.dataset.row), e.shiftKey)
    case 'open': return on.onOpen(Number(act.dataset.row))
    case 'peek': return at ? on.onPeek(at) : undefined
    default: if (at) on.onPlace(at)
  }
}
