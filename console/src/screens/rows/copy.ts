/** Rows as text for other programs. */

import { identifier, literal as quote } from '../../components/sqlText'
import { isNull, textOf, writeRows, type Raw, type Row } from './json'
import type { Column } from './types'

export type Format = 'JSON' | 'CSV' | 'SQL' | 'Markdown'
export const formats: Format[] = ['JSON', 'CSV', 'SQL', 'Markdown']

interface Source {
  schema: string
  name: string
  columns: Column[]
}

export function write(format: Format, source: Source, rows: Row[]): string {
  switch (format) {
    case 'JSON': return writeRows(rows, source.columns.map((c) => c.name))
    case 'CSV': return csv(source.columns, rows)
    case 'SQL': return insert(source, rows)
    case 'Markdown': return markdown(source.columns, rows)
  }
}

function csv(columns: Column[], rows: Row[]): string {
  const field = (text: string) => (/[",\n\r]/.test(text) || text === '' ? `"${text.replaceAll('"', '""')}"` : text)
  const lines = rows.map((row) => columns.map(({ name }) => {
    const raw = row[name]
    return raw === undefined || isNull(raw) ? '' : field(textOf(raw))
  }).join(','))

  return [columns.map((c) => field(c.name)).join(','), ...lines].join('\r\n') + '\r\n'
}

/** Writes an insert that PostgreSQL runs; own values for identity columns are allowed. */
export function insert({ schema, name, columns }: Source, rows: Row[]): string {
  const values = rows.map((row) => `  (${columns.map((c) => literal(row[c.name], c)).join(', ')})`)
  return `insert into ${identifier(schema)}.${identifier(name)} (${columns.map((c) => identifier(c.name)).join(', ')})\n`
    + `overriding system value values\n${values.join(',\n')};\n`
}

function literal(raw: Raw | undefined, column: Column): string {
  if (raw === undefined || isNull(raw)) return 'null'
  if (raw === 'true' || raw === 'false') return raw
  if (column.kind === 'number' && !raw.startsWith('"')) return raw
  if (column.kind === 'json') return quote(raw)
  if (column.kind === 'array') return arrayLiteral(raw, column)

  return quote(textOf(raw))
}

/** An array in PostgreSQL's own form; only a parsed array of texts, numbers and nulls has one here. */
function arrayLiteral(raw: Raw, column: Column): string {
  const form = (at: string): string => at.replace(/^\[|\]$/g, '')
  if (/json/.test(column.type)) {
    const items: unknown[] = JSON.parse(raw) as unknown[]
    return quote(`{${items.map((i) => JSON.stringify(JSON.stringify(i))).join(',')}}`)
  }

  return quote(`{${form(nested(raw))}}`)
}

/** Replaces brackets outside of texts by braces. JSON's escapes of texts become PostgreSQL's. */
function nested(raw: Raw): string {
  return raw.replace(/"(?:[^"\\]|\\.)*"|\[|\]/g, (part, at: number) => {
    if (part === '[') return at === 0 ? '[' : '{'
    if (part === ']') return at === raw.length - 1 ? ']' : '}'
    return `"${(JSON.parse(part) as string).replace(/["\\]/g, '\\$&')}"`
  })
}

function markdown(columns: Column[], rows: Row[]): string {
  const cell = (text: string) => text.replaceAll('\\', '\\\\').replaceAll('|', '\\|').replace(/\r?\n/g, '<br>')
  const line = (cells: string[]) => `| ${cells.join(' | ')} |`

  return [
    line(columns.map((c) => cell(c.name))),
    line(columns.map((c) => (c.kind === 'number' ? '---:' : '---'))),
    ...rows.map((row) => line(columns.map((c) => (isNull(row[c.name]) ? '' : cell(textOf(row[c.name] ?? '')))))),
  ].join('\n') + '\n'
}
