/** Pages of rows: loaded where the grid is looked at, kept by Query's cache. */

import { useQueries, useQuery } from '@tanstack/react-query'
import { send } from '../../api/client'
import { ApiError } from '../../api/failure'
import { queries } from '../../queries'
import { parseRows, type Row } from './json'
import { hasKeyset, headersOf, pagePath, totalOf, type Start, type View } from './request'

export interface Pages {
  rowAt: (index: number) => Row | undefined
  loaded: () => { index: number; row: Row }[]
  count: number // rows that the grid has room for
  total: number | null // null: not known yet
  exact: boolean
  error: unknown
  isPending: boolean
  retry: () => void
}

export interface Page {
  rows: Row[]
  last: boolean // no row follows
}

/** Rows of a page; fewer for very wide tables. */
export function pageSize(columns: number): number {
  return Math.max(20, Math.min(200, Math.floor(10_000 / Math.max(columns, 1))))
}

/** The key of a view's pages, without the number of the page. */
export function viewKey(view: View): readonly unknown[] {
  const { columns, filters, sort, as } = view
  return ['rows', view.project, `${view.schema}.${view.name}`, { columns, filters, sort, as }]
}

/** Loads the pages that have the rows from first to last, and what is known of all. */
export function useRowPages(view: View, size: number, first: number, last: number): Pages {
  const key = viewKey(view)
  const numbers = range(Math.floor(Math.max(first, 0) / size), Math.floor(Math.max(last, 0) / size))
  const results = useQueries({
    queries: numbers.map((page) => ({
      queryKey: [...key, page],
      staleTime: 60_000,
      queryFn: ({ signal }: { signal: AbortSignal }) => loadPage(view, size, page, signal),
    })),
  })
  const estimate = useQuery({
    queryKey: [...key, 'count'],
    staleTime: 60_000,
    queryFn: ({ signal }) => estimateCount(view, signal),
    retry: false,
  })

  // Reading data here renders the grid again when a page is loaded once more.
  const shown = new Map(numbers.map((n, i) => [n, results[i]?.data]))
  const pageOf = (page: number) => shown.get(page) ?? queries.getQueryData<Page>([...key, page])
  const end = endOf(pageOf, size, numbers)
  const reached = Math.max(0, ...numbers.map((n) => (pageOf(n)?.rows.length ? n * size + pageOf(n)!.rows.length + 1 : 0)))
  const failed = results.find((r) => r.error !== null)

  return {
    rowAt: (index) => pageOf(Math.floor(index / size))?.rows[index % size],
    loaded: () => queries.getQueriesData<Page>({ queryKey: key }).flatMap(([k, page]) => {
      const number = k.at(-1)
      if (typeof number !== 'number' || page === undefined) return []
      return page.rows.map((row, i) => ({ index: number * size + i, row }))
    }).sort((a, b) => a.index - b.index),
    count: end ?? Math.max(estimate.data ?? 0, reached),
    total: end ?? estimate.data ?? null,
    exact: end !== null,
    error: failed?.error ?? null,
    isPending: results.some((r) => r.isPending),
    retry: () => results.forEach((r) => r.error !== null && void r.refetch()),
  }
}

/** Returns the number of all rows if the last page is among those loaded. */
function endOf(pageOf: (n: number) => Page | undefined, size: number, numbers: number[]): number | null {
  for (const n of numbers) {
    const page = pageOf(n)
    if (page?.last && (page.rows.length > 0 || n === 0 || pageOf(n - 1) !== undefined)) return n * size + page.rows.length
  }

  return null
}

async function loadPage(view: View, size: number, page: number, signal: AbortSignal): Promise<Page> {
  const start = startOf(view, size, page)
  const rows = await fetchRows(view, pagePath(view, start, size), signal)
  if ('before' in start) rows.reverse()
  if ('before' in start && rows.length < size) { // rows were deleted meanwhile
    return loadAt(view, size, page, signal)
  }

  return { rows, last: rows.length < size }
}

async function loadAt(view: View, size: number, page: number, signal: AbortSignal): Promise<Page> {
  const rows = await fetchRows(view, pagePath(view, { offset: page * size }, size), signal)
  return { rows, last: rows.length < size }
}

/** Begins next to a neighbour where the order allows it: the server then skips no rows. */
function startOf(view: View, size: number, page: number): Start {
  if (page === 0 || !hasKeyset(view)) return { offset: page * size }

  const key = viewKey(view)
  const before = queries.getQueryData<Page>([...key, page - 1])
  const after = queries.getQueryData<Page>([...key, page + 1])
  const lastRow = before?.rows.length === size ? before.rows.at(-1) : undefined
  const firstRow = after?.rows[0]
  if (lastRow) return { after: lastRow }
  if (firstRow) return { before: firstRow }

  return { offset: page * size }
}

export async function fetchRows(view: Pick<View, 'schema' | 'as'>, path: string, signal?: AbortSignal): Promise<Row[]> {
  const response = await send(location.origin + path, { headers: headersOf(view), signal: signal ?? null })
  const text = await response.text()
  if (!response.ok) throw rowFailure(response, text)

  return parseRows(text)
}

async function estimateCount(view: View, signal: AbortSignal): Promise<number> {
  const path = pagePath({ ...view, sort: [], columns: [] }, { offset: 0 }, 1)
  const response = await send(location.origin + path, {
    method: 'HEAD', headers: { ...headersOf(view), Prefer: 'count=estimated' }, signal,
  })
  if (!response.ok) throw rowFailure(response, '')

  return totalOf(response.headers.get('Content-Range')) ?? 0
}

/** Reads a failed answer of the rows API, with the database's detail and hint. */
export function rowFailure(response: Response, text: string): ApiError {
  const answer = members(text)
  const sentences = [answer.message, answer.details, answer.hint].filter((s): s is string => typeof s === 'string' && s !== '')
  const detail = sentences.map((s) => (/[.!?]$/.test(s) ? s : `${s}.`)).join(' ')

  return new ApiError(response.status, {
    code: typeof answer.code === 'string' ? answer.code : '',
    detail: detail.charAt(0).toUpperCase() + detail.slice(1),
    requestId: response.headers.get('X-Request-Id') ?? '',
  })
}

function members(text: string): Record<string, unknown> {
  try {
    const answer: unknown = JSON.parse(text)
    return typeof answer === 'object' && answer !== null ? (answer as Record<string, unknown>) : {}
  } catch {
    return {}
  }
}

function range(from: number, to: number): number[] {
  return Array.from({ length: Math.max(0, to - from + 1) }, (_, i) => from + i)
}
