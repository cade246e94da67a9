/**
 * The publishable key that fills the snippets. The server shows a key once, so this tab remembers
 * it. A publishable key is public: applications send it to every visitor.
 */

const name = (project: string) => `socle-publishable-key ${project}`

export function rememberKey(project: string, key: string): void {
  sessionStorage.setItem(name(project), key)
}

/** Returns the remembered key if it begins with one of hints, so if it is not revoked; or null. */
export function rememberedKey(project: string, hints: string[]): string | null {
  const key = sessionStorage.getItem(name(project))
  return key !== null && hints.some((hint) => key.startsWith(hint)) ? key : null
}
