import { texts } from '#texts/rows'
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
    { text: texts.sortAscending, onSelect: () => state.sortBy(column.name, false, false) },
    { text: texts.sortDescending, onSelect: () => state.sortBy(column.name, false, true) },
    { text: texts.sortByThisAsWell, onSelect: () => state.sortBy(column.name, true) },
    { text: texts.filterByThisColumn, onSelect: () => {
      const filters = readFilters(state.filter)
      if (!filters.some((f) => f.column === column.name)) state.setFilter(writeFilters([...filters, { ...blank(column), operator: 'notnull' }]))
      onFilter()
    } },
    { text: isPinned ? texts.unpinColumn : texts.pinColumn, onSelect: () => setLayout({ pinned: toggle(layout.pinned, column.name) }) },
    { text: texts.moveLeft, onSelect: () => setLayout({ order: move(columns, layout, column.name, -1) }) },
    { text: texts.moveRight, onSelect: () => setLayout({ order: move(columns, layout, column.name, 1) }) },
    { text: texts.hideColumn, onSelect: () => setLayout({ hidden: [...layout.hidden, column.name] }) },
  ]
}
