import { texts } from '#texts/settings'
import type { Schemas } from '../../api/client'
import type { Values } from '../../components/specs'

export type AuthBody = Schemas['UpdateAuthSettingsBody']

const secret = 'secrets.'

/** Splits changed settings into members and secrets; the names of secrets have a prefix in forms. */
export function splitSecrets(changed: Values): { members: Values; secrets: Record<string, string> } {
  const entries = Object.entries(changed)

  return {
    members: Object.fromEntries(entries.filter(([name]) => !name.startsWith(secret))),
    secrets: Object.fromEntries(entries.filter(([name]) => name.startsWith(secret))
      .map(([name, value]) => [name.slice(secret.length), String(value)])),
  }
}

/**
 * Returns the request that changes members of an object which the API replaces whole. Empty texts
 * are left out: the API then takes its default.
 */
export function objectBody(name: keyof AuthBody, current: object, changed: Values): AuthBody {
  const { members, secrets } = splitSecrets(changed)
  const merged = Object.entries({ ...current, ...members }).filter(([, value]) => value !== '')

  return {
    ...(Object.keys(members).length > 0 && { [name]: Object.fromEntries(merged) }),
    ...(Object.keys(secrets).length > 0 && { secrets }),
  }
}

/** Returns "number=code" lines as the API has them: numbers without +. It throws an Error that names a broken line. */
export function testNumbers(lines: unknown): Record<string, string> {
  if (!Array.isArray(lines)) return {}

  return Object.fromEntries(lines.map((line) => {
    const [number, code] = String(line).split('=').map((part) => part.trim())
    if (!number || !code) throw new Error(texts.theTestNumberIsNot(String(line)))
    return [number.replace(/^\+/, ''), code]
  }))
}
