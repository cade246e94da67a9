/** Places tables and their foreign keys: referenced tables on the left, those that refer to them on the right. */

export interface Column {
  name: string
  type: string
  primary: boolean
  reference: { table: string; column: string } | null
}

export interface Table {
  name: string // schema.name
  columns: Column[]
}

export interface Box {
  table: Table
  shown: Column[]
  hidden: number // columns that are not shown
  x: number
  y: number
  width: number
  height: number
}

export interface Edge {
  from: string // the table with the foreign key
  to: string
  column: string
  path: string // of SVG
}

export interface Layout {
  boxes: Box[]
  edges: Edge[]
  width: number
  height: number
}

export type Detail = 'keys' | 'all'

export const size = { head: 30, row: 20, pad: 12, char: 7.3 } as const // px; char: the monospaced font at 12px
const [narrowest, widest] = [150, 300]
const [gapAcross, gapDown] = [90, 26]
const mostColumns = 14
const sweeps = 8
const shape = 1.5 // width : height that the picture aims at

/** Returns the picture of tables. Its result depends on nothing but its input. */
export function layOut(tables: Table[], detail: Detail): Layout {
  const boxes = new Map(tables.map((t) => [t.name, boxOf(t, detail)]))
  const parents = referencesOf(tables)
  const linked = new Set([...parents].flatMap(([child, names]) => names.length > 0 ? [child, ...names] : []))
  const area = [...boxes.values()].reduce((sum, b) => sum + (b.width + gapAcross) * (b.height + gapDown), 0)
  const tallest = Math.max(600, Math.sqrt(area / shape))

  const layers = ordered(layersOf([...linked].sort(), parents), parents)
  const columns = layers.flatMap((names) => split(names.map((n) => boxes.get(n)!), tallest))
  let x = 0
  for (const column of columns) {
    for (const box of column) box.x = x
    x += Math.max(...column.map((b) => b.width)) + gapAcross
  }
  settle(columns, neighborsOf(parents), boxes)

  const alone = tables.filter((t) => !linked.has(t.name)).map((t) => boxes.get(t.name)!)
  const bottom = columns.length === 0 ? 0 : Math.max(...columns.flat().map((b) => b.y + b.height)) + 2 * gapDown
  pack(alone, bottom, Math.max(x - gapAcross, Math.sqrt(area * shape)))

  const all = [...boxes.values()]
  return {
    boxes: all,
    edges: tables.flatMap((t) => edgesOf(boxes.get(t.name)!, boxes)),
    width: Math.max(0, ...all.map((b) => b.x + b.width)),
    height: Math.max(0, ...all.map((b) => b.y + b.height)),
  }
}

function boxOf(table: Table, detail: Detail): Box {
  const wanted = detail === 'all' ? table.columns : table.columns.filter((c) => c.primary || c.reference !== null)
  const shown = wanted.length > mostColumns ? wanted.slice(0, mostColumns) : wanted
  const hidden = table.columns.length - shown.length
  const chars = Math.max(lengthOf(table.name) + 2, ...shown.map((c) => lengthOf(c.name) + lengthOf(c.type) + 5))
  const lines = shown.length + (hidden > 0 ? 1 : 0)

  return {
    table, shown, hidden, x: 0, y: 0,
    width: Math.round(Math.min(widest, Math.max(narrowest, chars * size.char + 2 * size.pad))),
    height: size.head + lines * size.row + (lines > 0 ? size.pad / 2 : 0),
  }
}

/** Returns the width of a text in characters; those of East Asian scripts and pictures count twice. */
export function lengthOf(text: string): number {
  let n = 0
  for (const c of text) n += c.codePointAt(0)! > 0x2e7f ? 2 : 1
  return n
}

/** Cuts a text that is wider than a number of characters. */
export function cut(text: string, chars: number): string {
  if (lengthOf(text) <= chars) return text
  let [kept, n] = ['', 1]
  for (const c of text) {
    n += lengthOf(c)
    if (n > chars) break
    kept += c
  }
  return `${kept}…`
}

/** Returns the tables that each table refers to, without itself and without those that are not in the picture. */
function referencesOf(tables: Table[]): Map<string, string[]> {
  const known = new Set(tables.map((t) => t.name))
  return new Map(tables.map((t) => {
    const names = t.columns.flatMap((c) => (c.reference === null ? [] : [c.reference.table]))
    return [t.name, [...new Set(names)].filter((n) => n !== t.name && known.has(n))]
  }))
}

/** Puts each table one layer behind all that it refers to. A reference that closes a circle does not count. */
function layersOf(names: string[], parents: Map<string, string[]>): string[][] {
  const depth = new Map<string, number>()
  const open = new Set<string>()
  const visit = (name: string): number => {
    const known = depth.get(name)
    if (known !== undefined) return known
    if (open.has(name)) return -1

    open.add(name)
    const n = 1 + Math.max(-1, ...(parents.get(name) ?? []).map(visit))
    open.delete(name)
    depth.set(name, n)
    return n
  }
  names.forEach(visit)

  const layers: string[][] = []
  for (const name of names) (layers[depth.get(name)!] ??= []).push(name)
  return layers.filter((l) => l !== undefined)
}

function neighborsOf(parents: Map<string, string[]>): Map<string, string[]> {
  const neighbors = new Map<string, string[]>()
  const add = (a: string, b: string) => neighbors.set(a, [...neighbors.get(a) ?? [], b])
  for (const [child, names] of parents) {
    for (const parent of names) {
      add(child, parent)
      add(parent, child)
    }
  }
  return neighbors
}

/** Orders each layer so that fewer lines cross: by the mean place of what a table is linked with. */
function ordered(layers: string[][], parents: Map<string, string[]>): string[][] {
  const neighbors = neighborsOf(parents)
  const place = new Map<string, number>()
  const number = (layer: string[]) => layer.forEach((n, i) => place.set(n, (i + 0.5) / layer.length))
  layers.forEach(number)

  for (let sweep = 0; sweep < sweeps; sweep++) {
    for (const layer of sweep % 2 === 0 ? layers : [...layers].reverse()) {
      const mean = new Map(layer.map((n) => [n, average((neighbors.get(n) ?? []).map((o) => place.get(o)!)) ?? place.get(n)!]))
      layer.sort((a, b) => mean.get(a)! - mean.get(b)! || (a < b ? -1 : 1))
      number(layer)
    }
  }
  return layers
}

const average = (values: number[]) =>
  values.length === 0 ? undefined : values.reduce((a, b) => a + b, 0) / values.length

/** Splits a layer into columns that are not taller than the picture should be. */
function split(boxes: Box[], tallest: number): Box[][] {
  const total = boxes.reduce((sum, b) => sum + b.height + gapDown, 0)
  const columns: Box[][] = []
  const room = total / Math.ceil(total / tallest)
  let used = Infinity
  for (const box of boxes) {
    if (used + box.height / 2 > room) {
      columns.push([])
      used = 0
    }
    columns.at(-1)!.push(box)
    used += box.height + gapDown
  }
  return columns
}

/** Places the boxes of each column below each other, near those that they are linked with. */
function settle(columns: Box[][], neighbors: Map<string, string[]>, boxes: Map<string, Box>): void {
  for (const column of columns) stack(column, () => 0)
  for (let sweep = 0; sweep < sweeps; sweep++) {
    for (const column of sweep % 2 === 0 ? columns : [...columns].reverse()) {
      const wanted = new Map(column.map((box) => {
        const centers = (neighbors.get(box.table.name) ?? []).map((n) => center(boxes.get(n)!))
        return [box, (average(centers) ?? center(box)) - box.height / 2]
      }))
      stack(column, (box) => wanted.get(box)!)
      const off = average(column.map((box) => wanted.get(box)! - box.y)) ?? 0
      for (const box of column) box.y += off
    }
  }

  const top = Math.min(0, ...columns.flat().map((b) => b.y))
  const lowest = Math.min(...columns.flat().map((b) => b.y))
  for (const box of columns.flat()) box.y = Math.round(box.y - (top < 0 ? top : lowest))
}

const center = (box: Box) => box.y + box.height / 2

function stack(column: Box[], wanted: (box: Box) => number): void {
  let free = -Infinity
  for (const box of column) {
    box.y = Math.max(free, wanted(box))
    free = box.y + box.height + gapDown
  }
}

/** Packs boxes that nothing is linked with into columns of about the same height. */
function pack(boxes: Box[], top: number, room: number): void {
  if (boxes.length === 0) return
  const step = Math.max(...boxes.map((b) => b.width)) + gapDown
  const bottoms = Array.from({ length: Math.max(1, Math.min(boxes.length, Math.floor((room + gapDown) / step))) }, () => top)
  for (const box of boxes) {
    const i = bottoms.indexOf(Math.min(...bottoms))
    box.x = i * step
    box.y = bottoms[i]!
    bottoms[i] = box.y + box.height + gapDown
  }
}

function edgesOf(box: Box, boxes: Map<string, Box>): Edge[] {
  return box.table.columns.flatMap(({ name, reference }) => {
    const target = reference === null ? undefined : boxes.get(reference.table)
    if (reference === null || target === undefined) return []

    const path = curve(box, lineOf(box, name), target, lineOf(target, reference.column))
    return [{ from: box.table.name, to: target.table.name, column: name, path }]
  })
}

/** Returns the height of a column's line; that of the last line if the column is not shown. */
function lineOf(box: Box, column: string): number {
  const i = box.shown.findIndex((c) => c.name === column)
  if (i < 0 && box.shown.length === 0 && box.hidden === 0) return box.y + size.head / 2
  return box.y + size.head + ((i < 0 ? box.shown.length : i) + 0.5) * size.row
}

function curve(from: Box, y1: number, to: Box, y2: number): string {
  const isLeft = to.x + to.width <= from.x
  const [x1, x2] = [isLeft ? from.x : from.x + from.width, to.x + to.width]
  const bend = isLeft ? Math.max(30, (x1 - x2) / 2) : 0
  const [c1, c2] = isLeft ? [x1 - bend, x2 + bend] : [x1 + 50, Math.max(x1, x2) + 50]

  return `M${x1} ${y1} C${c1} ${y1} ${c2} ${y2} ${x2} ${y2}`
}
