/** How a person arranged the columns of a table; kept in this browser. */

import { useState } from 'react'
import { defaultWidth, type Column } from './types'

export interface Layout {
  order: string[]
  hidden: string[]
  pinned: string[]
  widths: Record<string, number>
}

export interface Arranged {
  pinned: Column[]
  free: Column[]
  widthOf: (column: Column) => number
}

const none: Layout = { order: [], hidden: [], pinned: [], widths: {} }
const minWidth = 60

/** Returns a table's layout and a function that changes it. */
export function useLayout(project: string, fullName: string): [Layout, (change: Partial<Layout>) => void] {
  const name = `socle-columns:${project}:${fullName}`
  const [layout, setLayout] = useState(() => load(name))

  return [layout, (change) => setLayout((former) => {
    const next = { ...former, ...change }
    save(name, next)
    return next
  })]
}

/** Puts columns in the person's order; those of the key are pinned until they say otherwise. */
export function arrange(columns: Column[], layout: Layout, narrow: boolean): Arranged {
  const place = new Map(layout.order.map((name, i) => [name, i]))
  const shown = columns.filter((c) => !layout.hidden.includes(c.name))
    .map((c, i) => ({ c, at: place.get(c.name) ?? layout.order.length + i }))
    .sort((a, b) => a.at - b.at)
    .map(({ c }) => c)
  const isPinned = (c: Column) => layout.pinned.includes(c.name) !== (c.primary)
  const pinned = narrow ? [] : shown.filter(isPinned)

  return {
    pinned,
    free: narrow ? shown : shown.filter((c) => !isPinned(c)),
    widthOf: (c) => Math.max(layout.widths[c.name] ?? defaultWidth(c), minWidth),
  }
}

/** Moves a column next to its neighbour among all columns. */
export function move(columns: Column[], layout: Layout, name: string, step: -1 | 1): string[] {
  const { pinned, free } = arrange(columns, { ...layout, hidden: [] }, false)
  const order = [...pinned, ...free].map((c) => c.name)
  const from = order.indexOf(name)
  const to = from + step
  const other = order[to]
  if (from < 0 || other === undefined) return order
  order[from] = other
  order[to] = name

  return order
}

export function toggle(list: string[], name: string): string[] {
  return list.includes(name) ? list.filter((n) => n !== name) : [...list, name]
}

function load(name: string): Layout {
  try {
    return { ...none, ...(JSON.parse(localStorage.getItem(name) ?? '{}') as Partial<Layout>) }
  } catch {
    return none
  }
}

function save(name: string, layout: Layout): void {
  try {
    localStorage.setItem(name, JSON.stringify(layout))
  } catch {
    // private windows may refuse; the layout then lasts as long as the page
  }
}
