/** Types of events that a webhook can have, besides changes of rows, as internal/event lists them. */
export const eventTypes: Record<string, string> = {
  'socle.file.stored.v1': 'A file was uploaded, or its bytes were replaced.',
  'socle.file.moved.v1': 'A file was renamed or moved.',
  'socle.file.deleted.v1': 'A file was deleted.',
  'socle.form.submitted.v1': 'A response to a form was completed.',
  'socle.user.created.v1': 'An end user was created.',
  'socle.user.signed_in.v1': 'An end user began a session.',
  'socle.user.deleted.v1': 'An end user was deleted.',
  'socle.migration.applied.v1': "A migration of the project's schema was applied.",
}

/** Parses headers, one a line as "Name: value". Returns a sentence that says what is wrong with another text. */
export function parseHeaders(text: string): Record<string, string> | string {
  const headers: Record<string, string> = {}
  for (const line of text.split('\n').filter((l) => l.trim() !== '')) {
    const [, name, value] = /^\s*([\w!#$%&'*+.^`|~-]+)\s*:\s*(.+?)\s*$/.exec(line) ?? []
    if (name === undefined || value === undefined) return `Write each line as “Name: value”, not “${line.trim()}”.`
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
