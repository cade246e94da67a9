/** From what a person types to the JSON that is sent. */

import { texts } from '#texts/rows'
import { indent, isNull, textOf, type Raw } from './json'
import type { Column, Kind } from './types'

/** What an editor holds: a typed text, null, or the column's default. */
export interface Draft {
  mode: 'value' | 'null' | 'default'
  text: string
}

export type Encoded = { raw: Raw } | { error: string }

/** Returns the draft that an editor begins with. */
export function draftOf(raw: Raw | undefined, kind: Kind): Draft {
  if (raw === undefined || isNull(raw)) return { mode: 'null', text: '' }
  if (kind === 'json') return { mode: 'value', text: indent(raw) }
  if (kind === 'array') return { mode: 'value', text: raw }

  return { mode: 'value', text: textOf(raw) }
}

/** Checks a typed text and returns it as JSON; the database checks the rest. */
export function encode(column: Pick<Column, 'kind' | 'notNull'>, draft: Draft): Encoded {
  if (draft.mode !== 'value') return { raw: 'null' }
  const text = draft.text

  switch (column.kind) {
    case 'json': return encodeJSON(text)
    case 'array': return encodeArray(text)
    case 'number': return encodeNumber(text.trim())
    case 'bytea': return /^\\x([0-9a-f]{2})*$/i.test(text.trim())
      ? { raw: JSON.stringify(text.trim()) }
      : { error: texts.writeBytesAsXAnd }
    case 'uuid':
    case 'date':
    case 'time':
    case 'timestamp': return text.trim() === ''
      ? { error: texts.writeAValueOrSet }
      : { raw: JSON.stringify(text.trim()) }
    default: return { raw: JSON.stringify(text) }
  }
}

function encodeJSON(text: string): Encoded {
  try {
    JSON.parse(text)
    return { raw: text.trim() }
  } catch (error) {
    return { error: texts.thisIsNotJSONYet(error instanceof Error ? error.message : String(error)) }
  }
}

function encodeArray(text: string): Encoded {
  const trimmed = text.trim()
  if (trimmed.startsWith('{')) return { raw: JSON.stringify(trimmed) } // PostgreSQL's own form
  const encoded = encodeJSON(trimmed)
  if ('raw' in encoded && !trimmed.startsWith('[')) return { error: texts.writeAnArraySuchAs }

  return encoded
}

/** Sends numbers as texts, so that nothing on the way rounds them. */
function encodeNumber(text: string): Encoded {
  return /^[+-]?(\d[\d_]*\.?\d*|\.\d+)(e[+-]?\d+)?$|^[+-]?infinity$|^nan$/i.test(text)
    ? { raw: JSON.stringify(text) }
    : { error: texts.writeANumberWithA }
}

/** Reports whether an update can compare the former value, to notice another person's change. */
export function isComparable(kind: Kind, type: string, raw: Raw | undefined): boolean {
  const exact = !/^(real|double precision)/.test(type) && !['json', 'array', 'bytea', 'other'].includes(kind)
  return exact && (raw === undefined || raw.length < 500)
}
