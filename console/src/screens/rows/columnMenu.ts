import type { MenuItem } from '../../components/Menu'
import { blank } from './FilterBar'
import { readFilters, writeFilters } from './filters'
import { move, toggle } from './layout'
import type { Column } from './types'
import type { useRowsView } from './useRowsView'

/** The actions of a column's header. */
export function menuOf(column: Column, columns: Column[], state: ReturnType<typeof useRowsView>, onFilter: () => void): MenuItem[] {
  const { layout, setLayout, arranged } = state
  const isPinned = arranged.pinned.includes(column)

  return [
    { text: 'Sort ascending', onSelect: () => state.sortBy(column.name, false, false) },
    { text: 'Sort descending', onSelect: () => state.sortBy(column.name, false, true) },
    { text: 'Sort by this as well', onSelect: () => state.sortBy(column.name, true) },
    { text: 'Filter by this column', onSelect: () => {
      const filters = readFilters(state.filter)
      if (!filters.some((f) => f.column === column.name)) state.setFilter(writeFilters([...filters, { ...blank(column), operator: 'notnull' }]))
      onFilter()
    } },
    { text: isPinned ? 'Unpin column' : 'Pin column', onSelect: () => setLayout({ pinned: toggle(layout.pinned, column.name) }) },
    { text: 'Move left', onSelect: () => setLayout({ order: move(columns, layout, column.name, -1) }) },
    { text: 'Move right', onSelect: () => setLayout({ order: move(columns, layout, column.name, 1) }) },
    { text: 'Hide column', onSelect: () => setLayout({ hidden: [...layout.hidden, column.name] }) },
  ]
}
