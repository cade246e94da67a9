/** How a cell looks. */

import { texts } from '#texts/rows'
import { isNull, textOf, type Raw } from './json'
import type { Kind } from './types'

export interface Shown {
  text: string
  look: 'null' | 'empty' | 'number' | 'boolean' | 'code' | 'plain'
}

const shownLetters = 300 // of a long text

/** Returns the one line that a cell shows. */
export function shown(raw: Raw | undefined, kind: Kind): Shown {
  if (raw === undefined || isNull(raw)) return { text: 'null', look: 'null' }
  if (kind === 'json') return { text: cut(raw), look: 'code' }
  if (kind === 'array') return { text: cut(raw), look: 'code' }

  const text = textOf(raw)
  if (kind === 'bytea') return { text: bytesText(text), look: 'code' }
  if (text === '') return { text: texts.emptyText, look: 'empty' }
  if (kind === 'number') return { text, look: 'number' }
  if (kind === 'boolean') return { text, look: 'boolean' }
  if (kind === 'uuid') return { text, look: 'code' }
  if (kind === 'timestamp') return { text: text.replace('T', ' '), look: 'plain' }

  return { text: cut(text), look: 'plain' }
}

function cut(text: string): string {
  const line = text.slice(0, shownLetters).replace(/[\n\r]+/g, '↵').replaceAll('\t', '⇥')
  return text.length > shownLetters ? `${line}…` : line
}

function bytesText(hex: string): string {
  const bytes = Math.max(0, (hex.length - 2) / 2)
  return `${hex.slice(0, 10)}${hex.length > 10 ? '…' : ''} (${bytes.toLocaleString('en')} ${bytes === 1 ? 'byte' : 'bytes'})`
}

/** Reports whether a text is an address that a link may have. */
export function isLink(text: string): boolean {
  return /^https?:\/\/[^\s]+$/i.test(text)
}
