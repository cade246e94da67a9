/** Types of events that a webhook can have, besides changes of rows, as internal/event lists them. */

import { texts } from '#texts/webhooks'
export const eventTypes: Record<string, string> = {
  'socle.file.stored.v1': texts.aFileWasUploadedOr,
  'socle.file.moved.v1': texts.aFileWasRenamedOr,
  'socle.file.deleted.v1': texts.aFileWasDeleted,
  'socle.form.submitted.v1': texts.aResponseToAForm,
  'socle.user.created.v1': texts.anEndUserWasCreated,
  'socle.user.signed_in.v1': texts.anEndUserBeganA,
  'socle.user.deleted.v1': texts.anEndUserWasDeleted,
  'socle.migration.applied.v1': texts.aMigrationOfTheProjects,
}

/** Parses headers, one a line as "Name: value". Returns a sentence that says what is wrong with another text. */
export function parseHeaders(text: string): Record<string, string> | string {
  const headers: Record<string, string> = {}
  for (const line of text.split('\n').filter((l) => l.trim() !== '')) {
    const [, name, value] = /^\s*([\w!#$%&'*+.^`|~-]+)\s*:\s*(.+?)\s*$/.exec(line) ?? []
    if (name === undefined || value === undefined) return texts.writeEachLineAsName(line.trim())
    headers[name] = value
  }

  return headers
}

/** Returns a body as indented JSON, or as it is. */
export function pretty(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2)
  } catch {
    return text
  }
}
