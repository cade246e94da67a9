/** The requests of the grid to a project's rows. */

import { parameterOf, quoteName, quoteValue, type Filter, type Sort } from './filters'
import { textOf, type Row } from './json'

export interface View {
  project: string
  schema: string
  name: string
  columns: string[] // empty: all
  key: string[]
  nullable: string[] // columns that can be null
  filters: Filter[]
  sort: Sort[]
  as: string // '', 'anon' or 'user:UUID'
}

/** Where a page begins: at a number, or next to a row that is already loaded. */
export type Start = { offset: number } | { after: Row } | { before: Row }

export const rowsPath = (project: string, name: string) =>
  `/projects/${project}/rest/v1/${encodeURIComponent(name)}`

/** Returns the headers that choose the schema and the caller. */
export function headersOf(view: { schema: string; as: string }, writes = false): Record<string, string> {
  return {
    ...(view.schema !== 'public' && { 'Accept-Profile': view.schema }),
    ...(view.schema !== 'public' && writes && { 'Content-Profile': view.schema }),
    ...(view.as !== '' && { 'X-Socle-As': view.as }),
  }
}

/** Returns the path of a page. */
export function pagePath(view: View, start: Start, limit: number): string {
  const search: [string, string][] = []
  if (view.columns.length > 0) search.push(['select', view.columns.map(quoteName).join(',')])
  for (const f of view.filters) search.push(parameterOf(f))

  const backwards = 'before' in start
  const order = orderOf(view)
  if (order.length > 0) {
    search.push(['order', order.map((s) => orderTerm(s, backwards, view.nullable)).join(',')])
  }
  if ('after' in start) search.push(keysetTerm(order, start.after, false))
  if ('before' in start) search.push(keysetTerm(order, start.before, true))
  search.push(['limit', String(limit)])
  if ('offset' in start && start.offset > 0) search.push(['offset', String(start.offset)])

  return `${rowsPath(view.project, view.name)}?${encodeQuery(search)}`
}

/** Returns the order with the key as its end, so that pages do not overlap. */
export function orderOf(view: Pick<View, 'sort' | 'key'>): Sort[] {
  const sorted = new Set(view.sort.map((s) => s.column))
  const descending = view.sort.length > 0 && view.sort.every((s) => s.descending)
  const rest = view.key.filter((column) => !sorted.has(column))

  return [...view.sort, ...rest.map((column) => ({ column, descending }))]
}

/** Reports whether pages can begin next to a loaded row: order by the key's columns alone, in one direction. */
export function hasKeyset(view: Pick<View, 'sort' | 'key'>): boolean {
  const order = orderOf(view)
  return view.key.length > 0 && order.length === view.key.length
    && order.every((s) => view.key.includes(s.column) && s.descending === order[0]?.descending)
}

function orderTerm({ column, descending }: Sort, backwards: boolean, nullable: string[]): string {
  const down = descending !== backwards
  const nulls = down && nullable.includes(column) ? '.nullslast' : ''
  return quoteName(column) + (down ? '.desc' : '') + nulls
}

/** Compares with a row by the columns of the order: a > 1 or (a = 1 and b > 2). */
function keysetTerm(order: Sort[], row: Row, backwards: boolean): [string, string] {
  const operator = (order[0]?.descending ?? false) !== backwards ? 'lt' : 'gt'
  const value = (column: string) => textOf(row[column] ?? 'null')
  const [only] = order
  if (order.length === 1 && only) return [quoteName(only.column), `${operator}.${value(only.column)}`]

  const terms = order.map(({ column }, i) => {
    const last = `${quoteName(column)}.${operator}.${quoteValue(value(column))}`
    if (i === 0) return last
    const equal = order.slice(0, i).map((s) => `${quoteName(s.column)}.eq.${quoteValue(value(s.column))}`)
    return `and(${[...equal, last].join(',')})`
  })
  return ['or', `(${terms.join(',')})`]
}

/** Returns the parameters that choose rows by their key. */
export function keyParameters(key: string[], rows: Row[]): [string, string][] {
  const value = (row: Row, column: string) => textOf(row[column] ?? 'null')
  const [column] = key
  if (rows.length === 1) return key.map((c) => [quoteName(c), `eq.${value(rows[0]!, c)}`])
  if (key.length === 1 && column !== undefined) {
    return [[quoteName(column), `in.(${rows.map((row) => quoteValue(value(row, column))).join(',')})`]]
  }

  const terms = rows.map((row) => `and(${key.map((c) => `${quoteName(c)}.eq.${quoteValue(value(row, c))}`).join(',')})`)
  return [['or', `(${terms.join(',')})`]]
}

/** Encodes a query; signs that need no encoding stay readable. */
export function encodeQuery(search: [string, string][]): string {
  return search.map(([name, value]) => `${encode(name)}=${encode(value)}`).join('&')
}

function encode(text: string): string {
  return encodeURIComponent(text).replace(/%2C|%3A/g, decodeURIComponent)
}

/** Reads the total of a Content-Range header such as 0-99/5000; null if it has none. */
export function totalOf(range: string | null): number | null {
  const total = /\/(\d+)$/.exec(range ?? '')?.[1]
  return total === undefined ? null : Number(total)
}
