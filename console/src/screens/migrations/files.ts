/** Migration files as a person chooses them, and what the project knows of them. */

import type { Schemas } from '../../api/client'

export type Applied = Schemas['Migration']

export interface File {
  version: string
  name: string
  sql: string
}

export type State = 'new' | 'applied' | 'changed' | 'unfinished' | 'late' | 'unknown'

const forms = [/^([0-9]{1,100})_(.*)$/s, /^([0-9]{14})-(.+)$/s] // version, name

/** Reads VERSION_NAME.sql; null for a name in another form. */
export function parseName(path: string): { version: string; name: string } | null {
  const base = (path.split('/').at(-1) ?? '').replace(/\.sql$/i, '')
  for (const form of forms) {
    const parts = form.exec(base)
    if (parts !== null) return { version: parts[1] ?? '', name: parts[2] ?? '' }
  }

  return null
}

/** Returns a text as the server compares it: without a byte order mark and Windows' line ends. */
export const normalized = (text: string) => text.replace(/^\ufeff/, '').replaceAll('\r\n', '\n')

/** Orders versions as a folder orders their file names. */
export function compare(a: string, b: string): number {
  const [x, y] = [`${a}_`, `${b}_`]
  return x < y ? -1 : x > y ? 1 : 0
}

/** Returns the SHA-256 of a text, or null where the browser has no cryptography (http without TLS). */
export async function checksumOf(text: string): Promise<string | null> {
  if (!('subtle' in crypto)) return null

  const sum = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(text))
  return [...new Uint8Array(sum)].map((b) => b.toString(16).padStart(2, '0')).join('')
}

/** Returns what the project knows of a file. */
export function stateOf(file: File, checksum: string | null, applied: Applied[]): State {
  const former = applied.find((a) => a.version === file.version)
  if (former === undefined) {
    return applied.some((a) => compare(a.version, file.version) > 0) ? 'late' : 'new'
  }
  if (former.durationMs === null) return 'unfinished'
  if (checksum === null) return 'unknown'

  return former.checksum === checksum ? 'applied' : 'changed'
}

/** Adds files in the order of their versions; one of the same version is replaced. */
export function merged(files: File[], added: File[]): File[] {
  const kept = files.filter((f) => !added.some((a) => a.version === f.version))
  return [...kept, ...added].sort((a, b) => compare(a.version, b.version))
}

/** Returns a time as the version of a new migration. */
export const versionOf = (time: Date) => time.toISOString().replace(/\D/g, '').slice(0, 14)
