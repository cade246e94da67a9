import type { KeyboardEvent } from 'react'
import type { GridEvents } from './Grid'

/** A cell: the number of its row and that of its column, from 0. */
export interface Place {
  index: number
  column: number
}

const pageRows = 15

interface Bounds {
  first: number
  last: number // row
  columnCount: number
}

/** Returns where a key leads from a cell; null if it leads nowhere. */
export function moved(place: Place, key: string, ctrl: boolean, { first, last, columnCount }: Bounds): Place | null {
  const row = (index: number) => ({ ...place, index: Math.min(Math.max(index, first), last) })
  const column = (n: number) => ({ ...place, column: Math.min(Math.max(n, 0), columnCount - 1) })
  switch (key) {
    case 'ArrowDown': return ctrl ? row(last) : row(place.index + 1)
    case 'ArrowUp': return ctrl ? row(first) : row(place.index - 1)
    case 'ArrowRight': return ctrl ? column(columnCount) : column(place.column + 1)
    case 'ArrowLeft': return ctrl ? column(0) : column(place.column - 1)
    case 'PageDown': return row(place.index + pageRows)
    case 'PageUp': return row(place.index - pageRows)
    case 'Home': return ctrl ? { index: first, column: 0 } : column(0)
    case 'End': return ctrl ? { index: last, column: columnCount - 1 } : column(columnCount)
    default: return null
  }
}

/** Returns the offset at which a piece of the content is in sight; a far one is put in the middle. */
export function scrolledTo(start: number, size: number, offset: number, room: number): number {
  if (start >= offset && start + size <= offset + room) return offset
  const isFar = start < offset - room || start > offset + 2 * room
  if (isFar) return Math.max(0, start - (room - size) / 2)

  return start < offset || size > room ? start : start + size - room
}

/** Returns the grid's keyboard handler. */
export function useGridKeys({ place, ...on }: GridEvents & Bounds & { place: Place | null }) {
  return (e: KeyboardEvent) => {
    if (e.target !== e.currentTarget || place === null) return // keys of a header's buttons are their own
    const ctrl = e.ctrlKey || e.metaKey
    const next = moved(place, e.key, ctrl, on)
    if (next !== null) {
      e.preventDefault()
      if (e.shiftKey && (e.key === 'ArrowDown' || e.key === 'ArrowUp')) on.onToggle(next.index, true)
      return on.onPlace(next)
    }

    if (act(e, place, ctrl, on)) e.preventDefault()
  }
}

function act(e: KeyboardEvent, place: Place, ctrl: boolean, on: GridEvents): boolean {
  if (e.key === 'Enter' && e.shiftKey) on.onOpen(place.index)
  else if (e.key === 'Enter' && e.altKey) on.onPeek(place)
  else if (e.key === 'Enter' || e.key === 'F2') on.onEdit(place)
  else if (e.key === ' ') on.onToggle(place.index, e.shiftKey)
  else if (ctrl && e.key.toLowerCase() === 'c' && getSelection()?.isCollapsed !== false) on.onCopy(place)
  else if (e.key.length === 1 && !ctrl && !e.altKey) on.onEdit(place, e.key)
  else return false

  return true
}
