/** The state of the grid's screen: what the URL says, and the view that follows from it. */

import { useCallback, useMemo, useState, useSyncExternalStore } from 'react'
import { useNavigate } from '@tanstack/react-router'
import { useURLState } from '../../url'
import { readFilters, readSort, writeSort } from './filters'
import { arrange, useLayout } from './layout'
import { pageSize, useRowPages } from './pages'
import type { Relation } from './relation'
import type { View } from './request'

/** Rows that the grid can scroll through at once; browsers limit an element's height. */
export const windowRows = 400_000

const step = 20 // rows; smaller movements ask for nothing
const narrowQuery = '(width < 640px)'

export function useNarrow(): boolean {
  return useSyncExternalStore((f) => {
    const media = matchMedia(narrowQuery)
    media.addEventListener('change', f)
    return () => media.removeEventListener('change', f)
  }, () => matchMedia(narrowQuery).matches)
}

export function useRowsView(project: string, relation: Relation) {
  const [filter, setFilter] = useURLState('filter', '')
  const [sort, setSort] = useURLState('sort', '')
  const [as, setAs] = useURLState('as', '')
  const [fromText, setFrom] = useURLState('from', '0')
  const [layout, setLayout] = useLayout(project, relation.fullName)
  const narrow = useNarrow()
  const arranged = useMemo(() => arrange(relation.columns, layout, narrow), [relation.columns, layout, narrow])

  const view = useMemo((): View => {
    const shown = new Set([...arranged.pinned, ...arranged.free].map((c) => c.name))
    const hides = relation.columns.some((c) => !shown.has(c.name))
    return {
      project, schema: relation.schema, name: relation.name, as, key: relation.key,
      columns: hides ? relation.columns.map((c) => c.name).filter((n) => shown.has(n) || relation.key.includes(n)) : [],
      nullable: relation.columns.filter((c) => !c.notNull).map((c) => c.name),
      filters: readFilters(filter), sort: readSort(sort),
    }
  }, [project, relation, arranged, filter, sort, as])

  const from = Math.max(0, Math.floor(Number(fromText)) || 0)
  const [seen, setSeen] = useState({ first: from, last: from + 40 })
  const onRange = useCallback((first: number, last: number) => setSeen((former) => {
    const next = { first: Math.floor(first / step) * step, last: Math.ceil((last + 1) / step) * step - 1 }
    return next.first === former.first && next.last === former.last ? former : next
  }), [])
  const inWindow = seen.first >= from && seen.first < from + windowRows ? seen : { first: from, last: from + 40 }
  const size = pageSize(view.columns.length || relation.columns.length)
  const pages = useRowPages(view, size, inWindow.first, inWindow.last)

  function sortBy(column: string, adds: boolean, descending?: boolean) {
    const former = view.sort.find((s) => s.column === column)
    const others = adds ? view.sort.filter((s) => s.column !== column) : []
    if (descending !== undefined) return setSort(writeSort([...others, { column, descending }]))
    if (former === undefined) return setSort(writeSort([...others, { column, descending: false }]))
    setSort(writeSort(former.descending ? others : [...others, { column, descending: true }]))
  }

  return {
    view, pages, arranged, layout, setLayout, filter, setFilter, sortBy, as, setAs, from, setFrom, onRange,
    seen: inWindow, size, open: useOpenRow(),
  }
}

/** The opened row's key, in the URL as `open=id=5`. */
function useOpenRow(): [Record<string, string> | null, (key: Record<string, string> | null) => void] {
  const [text] = useURLState('open', '')
  const navigate = useNavigate()
  const key = text === '' ? null : Object.fromEntries(new URLSearchParams(text))

  return [key, (next) => void navigate({
    to: '.',
    search: ((former: Record<string, unknown>) => {
      const { open: _, ...rest } = former
      return next === null ? rest : { ...rest, open: new URLSearchParams(next).toString() }
    }) as never,
  })]
}
