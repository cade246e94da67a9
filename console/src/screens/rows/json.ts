/** Rows as the server sent them: each cell is JSON text, so that no number loses digits. */

/** The JSON text of a cell, such as `12.50`, `"a"`, `null` or `{"n": 1}`. */
export type Raw = string

export type Row = Record<string, Raw>

/** Parses an array of objects and keeps the text of each member's value. */
export function parseRows(text: string): Row[] {
  const rows: Row[] = []
  let at = expect(text, space(text, 0), '[')
  if (text[space(text, at)] === ']') return rows

  for (;;) {
    const [row, end] = parseRow(text, at)
    rows.push(row)
    at = space(text, end)
    if (text[at] === ']') return rows
    at = expect(text, at, ',')
  }
}

function parseRow(text: string, start: number): [Row, number] {
  const row = Object.create(null) as Row // a column can be named __proto__
  let at = expect(text, space(text, start), '{')
  if (text[space(text, at)] === '}') return [row, space(text, at) + 1]

  for (;;) {
    const key = space(text, at)
    const keyEnd = stringEnd(text, key)
    const value = space(text, expect(text, space(text, keyEnd), ':'))
    const end = valueEnd(text, value)
    row[JSON.parse(text.slice(key, keyEnd)) as string] = text.slice(value, end)
    at = space(text, end)
    if (text[at] === '}') return [row, at + 1]
    at = expect(text, at, ',')
  }
}

function valueEnd(text: string, start: number): number {
  const first = text[start]
  if (first === '"') return stringEnd(text, start)
  if (first !== '{' && first !== '[') {
    let at = start
    while (at < text.length && !',]} \n\r\t'.includes(text[at]!)) at++
    if (at === start) throw new SyntaxError(`no value at ${start}`)
    return at
  }

  let depth = 0
  for (let at = start; at < text.length; at++) {
    const c = text[at]
    if (c === '"') at = stringEnd(text, at) - 1
    else if (c === '{' || c === '[') depth++
    else if ((c === '}' || c === ']') && --depth === 0) return at + 1
  }
  throw new SyntaxError('JSON ends within a value')
}

function stringEnd(text: string, start: number): number {
  expect(text, start, '"')
  for (let at = start + 1; at < text.length; at++) {
    if (text[at] === '\\') at++
    else if (text[at] === '"') return at + 1
  }
  throw new SyntaxError('JSON ends within a text')
}

function space(text: string, at: number): number {
  while (at < text.length && ' \n\r\t'.includes(text[at]!)) at++
  return at
}

function expect(text: string, at: number, sign: string): number {
  if (text[at] !== sign) throw new SyntaxError(`expected ${sign} at ${at}`)
  return at + 1
}

/** Returns a cell as PostgreSQL's text: a string without its quotes, all else as it stands. */
export function textOf(raw: Raw): string {
  return raw.startsWith('"') ? (JSON.parse(raw) as string) : raw
}

export const isNull = (raw: Raw | undefined): boolean => raw === undefined || raw === 'null'

/** Indents JSON text without reading its numbers. */
export function indent(raw: Raw): string {
  let out = ''
  let depth = 0
  const line = () => `\n${'  '.repeat(depth)}`

  for (let at = 0; at < raw.length; at++) {
    const c = raw[at]!
    if (c === '"') {
      const end = stringEnd(raw, at)
      out += raw.slice(at, end)
      at = end - 1
    } else if (c === '{' || c === '[') {
      const next = space(raw, at + 1)
      if (raw[next] === '}' || raw[next] === ']') {
        out += c + raw[next]
        at = next
      } else {
        depth++
        out += c + line()
      }
    } else if (c === '}' || c === ']') {
      depth--
      out += line() + c
    } else if (c === ',') {
      out += c + line()
    } else if (c === ':') {
      out += ': '
    } else if (!' \n\r\t'.includes(c)) {
      out += c
    }
  }

  return out
}

/** Writes rows as a JSON array of objects, with numbers as they came. */
export function writeRows(rows: Row[], columns: string[]): string {
  return `[${rows.map((row) => writeRow(row, columns)).join(',\n ')}]`
}

export function writeRow(row: Row, columns = Object.keys(row)): string {
  return `{${columns.filter((c) => row[c] !== undefined).map((c) => `${JSON.stringify(c)}: ${row[c]}`).join(', ')}}`
}
