/** JSON whose numbers keep the text that the server sent: no bigint or numeric loses a digit. */

export type Exact = null | boolean | string | Exact[] | { [key: string]: Exact }

const sign = '\u0000' // begins the text of a number; no text of PostgreSQL has this character
const numeral = /-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/y

/** Parses JSON. A number becomes its text behind a sign, which textOf and plain know. */
export function parseExact(text: string): Exact {
  const parts: string[] = []
  let start = 0 // of what is not in parts yet

  for (let i = 0; i < text.length; i++) {
    const c = text.charCodeAt(i)
    if (c === 0x22) {
      i = endOfString(text, i)
    } else if (c === 0x2d || (c >= 0x30 && c <= 0x39)) {
      numeral.lastIndex = i
      const digits = numeral.exec(text)?.[0] ?? ''
      parts.push(text.slice(start, i), `"\\u0000${digits}"`)
      start = i + digits.length
      i = start - 1
    }
  }

  return JSON.parse(parts.join('') + text.slice(start)) as Exact
}

function endOfString(text: string, quote: number): number {
  for (let end = text.indexOf('"', quote + 1); end !== -1; end = text.indexOf('"', end + 1)) {
    let slashes = 0
    while (text[end - 1 - slashes] === '\\') slashes++
    if (slashes % 2 === 0) return end
  }

  return text.length
}

const isNumeral = (value: Exact): value is string => typeof value === 'string' && value.startsWith(sign)

/** Returns a cell's text; null stays null. */
export function textOf(value: Exact): string | null {
  if (value === null) return null
  if (typeof value === 'string') return isNumeral(value) ? value.slice(1) : value

  return jsonOf(value)
}

/** Returns a value as JSON, with numbers as they came. */
export function jsonOf(value: Exact, indent = ''): string {
  if (isNumeral(value)) return value.slice(1)
  if (value === null || typeof value !== 'object') return JSON.stringify(value)

  const inner = indent === '' ? '' : indent + '  '
  const [open, close] = Array.isArray(value) ? ['[', ']'] : ['{', '}']
  const items = Array.isArray(value)
    ? value.map((v) => jsonOf(v, inner))
    : Object.entries(value).map(([k, v]) => `${JSON.stringify(k)}: ${jsonOf(v, inner)}`)
  if (items.length === 0) return open + close
  if (indent === '') return open + items.join(', ') + close

  return `${open}${inner}${items.join(`,${inner}`)}${indent}${close}`
}

/** Returns a value with numbers of JavaScript, for what computes with them. */
export function plain(value: Exact): unknown {
  if (isNumeral(value)) return Number(value.slice(1))
  if (Array.isArray(value)) return value.map(plain)
  if (value !== null && typeof value === 'object') {
    return Object.fromEntries(Object.entries(value).map(([k, v]) => [k, plain(v)]))
  }

  return value
}
