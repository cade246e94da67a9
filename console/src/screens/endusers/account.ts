/** What an account of an end user says, without its screen. */

import { texts } from '#texts/endusers'
import type { Schemas } from '../../api/client'

/** Returns the name under which people know an account: its address, its number, or its UUID. */
export function titleOf(a: Pick<Schemas['Account'], 'email' | 'phone' | 'uuid' | 'isAnonymous'>): string {
  if (a.email !== '') return a.email
  if (a.phone !== '') return `+${a.phone}`

  return a.isAnonymous ? texts.anonymousUuid(a.uuid.slice(0, 8)) : a.uuid
}

export type Members = Record<string, unknown>

/** Reads the text of a JSON object. Returns a sentence that says what is wrong with another text. */
export function parseMembers(text: string): Members | string {
  if (text.trim() === '') return {}

  try {
    const value: unknown = JSON.parse(text)
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return texts.enterAJSONObjectSuch

    return value as Members
  } catch (error) {
    return texts.notValidJSONError(error instanceof Error ? error.message : String(error))
  }
}

/** Returns the change from before to after as the API takes it: members to set, null for those to remove. */
export function patchOf(before: Members, after: Members): Members {
  const patch: Members = {}
  for (const [name, value] of Object.entries(after)) {
    if (JSON.stringify(before[name]) !== JSON.stringify(value)) patch[name] = value
  }
  for (const name of Object.keys(before)) {
    if (!(name in after)) patch[name] = null
  }

  return patch
}

/** Returns metadata as an object, whatever the API has. */
export function membersOf(value: unknown): Members {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Members) : {}
}
