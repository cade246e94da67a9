/** What an entry of the audit log says in words. */

import { texts } from '#texts/audit'
import type { Schemas } from '../../api/client'

export type AuditEntry = Schemas['AuditEntry']

/** Returns an operation's id as words: "createEndUser" is "create end user". */
export function actionText(action: string): string {
  return action
    .replace(/([a-z0-9])([A-Z])/g, '$1 $2')
    .replace(/([A-Z]+)([A-Z][a-z])/g, '$1 $2')
    .split(' ')
    .map((word) => (/^[A-Z]{2,}$/.test(word) ? word : word.toLowerCase()))
    .join(' ')
}

/** Names who made a change. */
export function actorText(e: Pick<AuditEntry, 'actor' | 'actorName' | 'actorEmail'>): string {
  if (e.actorName) return e.actorName
  if (e.actorEmail) return e.actorEmail

  return e.actor === undefined ? texts.theServer : `deleted user ${e.actor.slice(0, 8)}`
}

/** Returns the start of a day, or of the day after it, in the person's zone. */
export function dayStart(day: string, after = false): string | undefined {
  const match = /^(\d{4})-(\d\d)-(\d\d)$/.exec(day)
  if (!match) return undefined

  return new Date(Number(match[1]), Number(match[2]) - 1, Number(match[3]) + (after ? 1 : 0)).toISOString()
}

/** Returns a target's path without the project, and with the names of known UUIDs. */
export function targetText(target: string, project: string, names: ReadonlyMap<string, string>): string {
  const short = target.startsWith(`/projects/${project}/`) ? target.slice(`/projects/${project}`.length) : target

  return short.replace(/[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, (uuid) => names.get(uuid) ?? uuid)
}
