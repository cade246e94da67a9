/** What the console needs to know about a text of SQL without parsing it. */

import { texts } from '#texts/sql'

const dollarTag = /\$(?:[A-Za-z_]\w*)?\$/y

/** Returns the text with strings, quoted names and comments blanked, at the same length. */
export function mask(text: string): string {
  let out = ''
  for (let i = 0; i < text.length;) {
    const end = endOfLiteral(text, i)
    if (end === i) {
      out += text[i]
      i++
    } else {
      out += text.slice(i, end).replace(/[^\n]/g, ' ')
      i = end
    }
  }

  return out
}

function endOfLiteral(text: string, at: number): number {
  const after = (end: number, length: number) => (end === -1 ? text.length : end + length)
  const two = text.slice(at, at + 2)
  if (two === '--') return after(text.indexOf('\n', at), 0)
  if (two === '/*') return after(text.indexOf('*/', at + 2), 2)

  const c = text[at]
  if (c === '"' || c === "'") return after(text.indexOf(c, at + 1), 1)
  if (c === '$') {
    dollarTag.lastIndex = at
    const tag = dollarTag.exec(text)?.[0]
    if (tag !== undefined) return after(text.indexOf(tag, at + tag.length), tag.length)
  }

  return at
}

/** Returns the number of parameters: the highest n of $n. */
export function parametersOf(text: string): number {
  const numbers = [...mask(text).matchAll(/\$(\d{1,3})\b/g)].map((m) => Number(m[1]))
  return Math.max(0, ...numbers)
}

/** Returns the range of the word at a position that PostgreSQL names: a character, from 1. */
export function rangeAt(text: string, position: number): { from: number; to: number } {
  let from = 0
  for (let n = 1; n < position && from < text.length; n++) {
    from += (text.codePointAt(from) ?? 0) > 0xffff ? 2 : 1
  }

  const word = /^(?:[\w$]+|"[^"]*"|'[^']*')/.exec(text.slice(from))
  return { from, to: from + (word?.[0].length ?? 1) }
}

/** Returns a name for a tab from its text. */
export function titleOf(text: string): string {
  const line = text.split('\n').map((l) => l.replace(/^--\s*/, '').trim()).find((l) => l !== '')
  return line === undefined ? texts.newQuery : line.length > 28 ? `${line.slice(0, 27)}…` : line
}
