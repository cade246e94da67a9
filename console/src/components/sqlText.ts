/** Names and texts as SQL has them. */

/** Returns a name as SQL has it. */
export function identifier(name: string): string {
  return /^[a-z_][a-z0-9_]*$/.test(name) ? name : `"${name.replaceAll('"', '""')}"`
}

/** Returns schema.name as SQL has it. */
export function tableIdentifier(full: string): string {
  const dot = full.indexOf('.')
  return `${identifier(full.slice(0, dot))}.${identifier(full.slice(dot + 1))}`
}

export const literal = (text: string) => `'${text.replaceAll("'", "''")}'`
