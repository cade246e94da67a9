/** Requests that change rows. */

import { ApiError, sendJSON, send } from '../../api/client'
import { insert } from './copy'
import { encode as encodeDraft, isComparable, type Draft } from './edit'
import { quoteName } from './filters'
import { isNull, parseRows, textOf, writeRow, writeRows, type Raw, type Row } from './json'
import { fetchRows, rowFailure } from './pages'
import type { Relation } from './relation'
import { encodeQuery, headersOf, keyParameters, pagePath, rowsPath } from './request'

export interface Target {
  project: string
  relation: Relation
  as: string
}

/** Values by column; undefined asks for the column's default. */
export type Changes = Record<string, Raw | undefined>

/** Someone else changed or deleted the row meanwhile. current is the row as it is now; null: it is gone. */
export class ConflictError extends Error {
  readonly current: Row | null

  constructor(current: Row | null, message: string) {
    super(message)
    this.name = 'ConflictError'
    this.current = current
  }
}

const keysAtOnce = 100 // rows, as their keys are in the URL

async function write(t: Target, method: string, search: [string, string][], body: string, prefer: string): Promise<Row[]> {
  const path = `${rowsPath(t.project, t.relation.name)}?${encodeQuery(search)}`
  const response = await send(location.origin + path, {
    method,
    headers: {
      ...headersOf({ schema: t.relation.schema, as: t.as }, true),
      'Content-Type': 'application/json',
      Prefer: `return=representation${prefer}`,
    },
    ...(body !== '' && { body }),
  })
  const text = await response.text()
  if (!response.ok) throw rowFailure(response, text)

  return text === '' ? [] : parseRows(text)
}

/** Changes one row if its key and the former values still match; returns it as it is now. */
export async function updateRow(t: Target, row: Row, changes: Changes): Promise<Row> {
  const names = Object.keys(changes)
  await checkIncomparable(t, row, names)
  const guards = names.flatMap((name): [string, string][] => {
    const column = t.relation.columns.find((c) => c.name === name)
    const raw = row[name]
    if (column === undefined || raw === undefined || !isComparable(column.kind, column.type, raw)) return []
    return [isNull(raw) ? [quoteName(name), 'is.null'] : [quoteName(name), `eq.${textOf(raw)}`]]
  })
  const sent = Object.entries(changes).filter(([, raw]) => raw !== undefined)
  const body = `{${sent.map(([name, raw]) => `${JSON.stringify(name)}: ${raw}`).join(', ')}}`
  const defaults = sent.length < names.length
  const search: [string, string][] = [
    ...keyParameters(t.relation.key, [row]), ...guards,
    ...(defaults ? [['columns', names.map(quoteName).join(',')] as [string, string]] : []),
  ]

  const [changed] = await write(t, 'PATCH', search, body, defaults ? ',missing=default' : '')
  if (changed) return changed

  const current = await readRow(t, row)
  if (current !== null && isSaved(current, changes)) return current // by an earlier attempt whose answer was lost

  throw conflict(current, row, names)
}

/** Throws a ConflictError if a value changed that a request cannot compare, such as JSON. */
async function checkIncomparable(t: Target, row: Row, names: string[]): Promise<void> {
  const incomparable = t.relation.columns.filter((c) => names.includes(c.name) && row[c.name] !== undefined
    && !isComparable(c.kind, c.type, row[c.name]))
  if (incomparable.length === 0) return

  const current = await readRow(t, row)
  if (current === null || incomparable.some((c) => current[c.name] !== row[c.name])) throw conflict(current, row, names)
}

/** Reports whether a row has all values that a change would give it. */
function isSaved(current: Row, changes: Changes): boolean {
  return Object.entries(changes).every(([name, raw]) => {
    const now = current[name]
    if (raw === undefined || now === undefined) return false
    return isNull(raw) || isNull(now) ? isNull(raw) && isNull(now) : textOf(raw) === textOf(now)
  })
}

function conflict(current: Row | null, row: Row, names: string[]): ConflictError {
  if (current === null) return new ConflictError(null, 'No row was changed: the row is gone or hidden by a policy.')

  const differs = names.some((name) => current[name] !== row[name])
  return new ConflictError(current, differs
    ? `Nothing was saved: someone changed this to ${describeValues(current, names)} meanwhile. Save again to replace it.`
    : 'No row was changed: a policy may allow reading this row, but not changing it.')
}

function describeValues(row: Row, names: string[]): string {
  const text = names.map((name) => textOf(row[name] ?? 'null')).join(', ')
  return text.length > 80 ? `“${text.slice(0, 80)}…”` : `“${text}”`
}

/** Reads a row again by its key; null if it is gone. */
export async function readRow(t: Target, row: Row): Promise<Row | null> {
  const path = `${rowsPath(t.project, t.relation.name)}?${encodeQuery([...keyParameters(t.relation.key, [row]), ['limit', '1']])}`
  const rows = await fetchRows({ schema: t.relation.schema, as: t.as }, path)
  return rows[0] ?? null
}

/** Returns the newest row with the given values; null if there is none, or if nothing tells it from others. */
export async function findSame(t: Target, values: Row): Promise<Row | null> {
  const { relation } = t
  const search = relation.columns.flatMap((c): [string, string][] => {
    const raw = values[c.name]
    if (raw === undefined || !isComparable(c.kind, c.type, raw)) return []
    return [[quoteName(c.name), isNull(raw) ? 'is.null' : `eq.${textOf(raw)}`]]
  })
  if (search.length === 0) return null

  const order: [string, string][] = relation.key.length > 0
    ? [['order', relation.key.map((k) => `${quoteName(k)}.desc`).join(',')]] : []
  const path = `${rowsPath(t.project, relation.name)}?${encodeQuery([...search, ...order, ['limit', '1']])}`
  const [row] = await fetchRows({ schema: relation.schema, as: t.as }, path)

  return row ?? null
}

export async function insertRow(t: Target, values: Row): Promise<Row | undefined> {
  const [row] = await write(t, 'POST', [], writeRow(values), '')
  return row
}

/** Deletes rows by their keys; returns those that were deleted. */
export async function deleteRows(t: Target, rows: Row[]): Promise<Row[]> {
  const deleted: Row[] = []
  for (let i = 0; i < rows.length; i += keysAtOnce) {
    const part = rows.slice(i, i + keysAtOnce)
    deleted.push(...await write(t, 'DELETE', keyParameters(t.relation.key, part), '', ''))
  }

  return deleted
}

/** Inserts deleted rows again, with their own keys. */
export async function restoreRows(t: Target, rows: Row[]): Promise<void> {
  const { columns } = t.relation
  try {
    await write(t, 'POST', [['columns', columns.map((c) => quoteName(c.name)).join(',')]],
      writeRows(rows, columns.map((c) => c.name)), '')
  } catch (error) {
    const alwaysGenerated = error instanceof ApiError && error.code === '428C9'
    if (!alwaysGenerated || t.as !== '') throw error
    await sendJSON('/sql', {
      method: 'POST', headers: { 'X-Project': t.project },
      json: { query: insert(t.relation, rows), read_only: false },
    })
  }
}

/** Turns drafts into a row to insert, or returns what is wrong by column. */
export function encodeDrafts(relation: Relation, drafts: Record<string, Draft>): { row: Row; errors: Record<string, string> } {
  const row = Object.create(null) as Row
  const errors: Record<string, string> = {}
  for (const column of relation.columns) {
    const draft = drafts[column.name]
    if (draft === undefined || draft.mode === 'default') continue
    const encoded = encodeDraft(column, draft)
    if ('raw' in encoded) row[column.name] = encoded.raw
    else errors[column.name] = encoded.error
  }

  return { row, errors }
}

/** Finds rows in a referenced table whose column, or any of its texts, has a text. */
export async function findReferenced(project: string, relation: Relation, column: string, text: string): Promise<Row[]> {
  const texts = relation.columns.filter((c) => c.kind === 'text').slice(0, 3)
  const shownColumns = [column, ...relation.columns.map((c) => c.name).filter((n) => n !== column).slice(0, 5)]
  const base = {
    project, schema: relation.schema, name: relation.name, columns: shownColumns, key: relation.key,
    nullable: [], filters: [], sort: [], as: '',
  }
  const path = pagePath(base, { offset: 0 }, 20)
  if (text === '') return fetchRows(base, path)

  const pattern = `"*${text.replace(/[\\%_]/g, '\\$&').replaceAll('\\', '\\\\').replaceAll('"', '\\"')}*"`
  const terms = texts.map((c) => `${quoteName(c.name)}.ilike.${pattern}`)
  const target = relation.columns.find((c) => c.name === column)
  if (target?.kind !== 'number' && target?.kind !== 'uuid') terms.push(`${quoteName(column)}.eq."${text.replace(/["\\]/g, '\\$&')}"`)
  else if (target.kind === 'number' ? /^\d{1,18}$/.test(text) : /^[0-9a-f-]{36}$/i.test(text)) {
    terms.push(`${quoteName(column)}.eq.${text}`)
  }
  if (terms.length === 0) return []

  return fetchRows(base, `${path}&${encodeQuery([['or', `(${terms.join(',')})`]])}`)
}

/** Returns the address of a filter by one value. */
export const filterBy = (column: string, raw: Raw): string =>
  new URLSearchParams([[column, `eq.${textOf(raw)}`]]).toString()


/** Sets the same values in many rows; returns how many changed. */
export async function updateRows(t: Target, rows: Row[], changes: Changes): Promise<number> {
  const names = Object.keys(changes)
  const sent = Object.entries(changes).filter(([, raw]) => raw !== undefined)
  const body = `{${sent.map(([name, raw]) => `${JSON.stringify(name)}: ${raw}`).join(', ')}}`
  const columns: [string, string][] = sent.length < names.length ? [['columns', names.map(quoteName).join(',')]] : []

  let changed = 0
  for (let i = 0; i < rows.length; i += keysAtOnce) {
    const keys = keyParameters(t.relation.key, rows.slice(i, i + keysAtOnce))
    changed += (await write(t, 'PATCH', [...keys, ...columns], body, columns.length > 0 ? ',missing=default' : '')).length
  }

  return changed
}
