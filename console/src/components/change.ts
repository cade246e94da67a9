/** Changes whose refusal names the objects that are in the way. */

import { texts } from '#texts/components'
import { ApiError, failureOf } from '../api/failure'

interface Named {
  kind: string
  name: string
}

interface Envelope {
  metadata?: { dependents?: Named[]; failing?: number; example?: unknown; detail?: string }
}

/** Awaits a call as read does. A failure's message also names the dependents and the values that fail. */
export async function change<D>(
  call: Promise<{ data?: D; error?: unknown; response: Response }>,
): Promise<NonNullable<D>> {
  const { data, error, response } = await call
  if (response.ok && data !== undefined && data !== null) return data

  const failure = failureOf(response, error)
  const more = details(error)
  if (more === '') throw failure

  throw new ApiError(failure.status,
    { code: failure.code, detail: `${failure.message} ${more}`, fields: failure.fields, requestId: failure.requestId },
    failure)
}

function details(error: unknown): string {
  const { dependents, failing, example } = (error as Envelope | undefined)?.metadata ?? {}
  const parts: string[] = []
  if (dependents && dependents.length > 0) parts.push(texts.itIsUsedByDependents(names(dependents)))
  if (failing !== undefined) parts.push(texts.valuesThatDoNotConvert(failing))
  if (example !== undefined && example !== null) parts.push(texts.oneIsInTheRow(JSON.stringify(example)))

  return parts.join(' ')
}

/** Returns objects as "view public.cheap, function public.f()". */
export function names(objects: Named[]): string {
  return objects.map((o) => `${o.kind} ${o.name}`).join(', ')
}

/** Returns what a person should adjust by hand after a change, or "". */
export function mentionsOf(metadata: { mentions?: Named[] | undefined }): string {
  const { mentions } = metadata
  return mentions && mentions.length > 0 ? texts.adjustWhatMentionsItMentions(names(mentions)) : ''
}
