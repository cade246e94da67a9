import { useRef, useState } from 'react'
import { rowKey } from './edits'
import type { Row } from './json'
import type { Pages } from './pages'
import type { Relation } from './relation'

export interface Selection {
  rows: Row[]
  isSelected: (index: number) => boolean
  allSelected: boolean
  toggle: (index: number, range: boolean) => void
  toggleAll: () => void
  clear: () => void
}

/** Rows that the person chose, by key; by number where there is none. They are forgotten when the view changes. */
export function useSelection(relation: Relation, pages: Pages, view: string): Selection {
  const [{ of, chosen }, set] = useState<{ of: string; chosen: ReadonlyMap<string, Row> }>({ of: view, chosen: new Map() })
  const current = of === view ? chosen : new Map<string, Row>()
  const anchor = useRef<number | null>(null)
  const idOf = (index: number, row: Row) => (relation.key.length === 0 ? `#${index}` : rowKey(relation, row))
  const put = (next: ReadonlyMap<string, Row>) => set({ of: view, chosen: next })

  function toggle(index: number, range: boolean) {
    const next = new Map(current)
    const row = pages.rowAt(index)
    if (row === undefined) return
    if (range && anchor.current !== null) {
      const [from, to] = [Math.min(anchor.current, index), Math.max(anchor.current, index)]
      for (let i = from; i <= to; i++) {
        const between = pages.rowAt(i)
        if (between !== undefined) next.set(idOf(i, between), between)
      }
    } else if (!next.delete(idOf(index, row))) {
      next.set(idOf(index, row), row)
    }
    anchor.current = index
    put(next)
  }

  function toggleAll() {
    const loaded = pages.loaded()
    const all = loaded.length > 0 && loaded.every(({ index, row }) => current.has(idOf(index, row)))
    put(all ? new Map() : new Map(loaded.map(({ index, row }) => [idOf(index, row), row])))
  }

  return {
    rows: [...current.values()],
    isSelected: (index) => {
      if (current.size === 0) return false
      const row = pages.rowAt(index)
      return row !== undefined && current.has(idOf(index, row))
    },
    allSelected: current.size > 0 && pages.loaded().every(({ index, row }) => current.has(idOf(index, row))),
    toggle,
    toggleAll,
    clear: () => put(new Map()),
  }
}
