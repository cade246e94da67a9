/** A result as a file. */

import { jsonOf, textOf } from '../../components/exact'
import type { Result } from '../../components/runSQL'

/** Returns CSV as PostgreSQL writes it: null is empty, empty text is "". */
export function csvOf(result: Result): string {
  const line = (cells: (string | null)[]) => `${cells.map(csvCell).join(',')}\r\n`
  return line(result.columns.map((c) => c.name)) + result.rows.map((row) => line(row.map(textOf))).join('')
}

function csvCell(text: string | null): string {
  if (text === null) return ''
  return text === '' || /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}

/** Returns an array of objects. A column whose name occurs before gets a number. */
export function jsonRowsOf(result: Result): string {
  const names = uniqueNames(result.columns.map((c) => c.name))
  const rows = result.rows.map((row) => {
    const members = row.map((value, i) => `${JSON.stringify(names[i])}: ${jsonOf(value)}`)
    return `  {${members.join(', ')}}`
  })

  return rows.length === 0 ? '[]\n' : `[\n${rows.join(',\n')}\n]\n`
}

function uniqueNames(names: string[]): string[] {
  const seen = new Map<string, number>()
  return names.map((name) => {
    const n = (seen.get(name) ?? 0) + 1
    seen.set(name, n)
    return n === 1 ? name : `${name}_${n}`
  })
}
