/** First calls of a project, as commands and code to copy. */

import { identifier } from '../../components/sqlText'

export const clients = ['curl', 'supabase-js', 'Python', 'psql'] as const
export type Client = (typeof clients)[number]

export const placeholder = 'PUBLISHABLE_KEY'

interface Target {
  origin: string // of the server
  project: string
  key: string
  table: string // of schema public
}

/** Returns the code that reads the first rows of a table. */
export function snippet(client: Client, { origin, project, key, table }: Target): string {
  const url = `${origin}/projects/${project}`

  switch (client) {
    case 'curl':
      return [
        `curl ${shell(`${url}/rest/v1/${encodeURIComponent(table)}?select=*&limit=10`)} \\`,
        `  -H ${shell(`apikey: ${key}`)}`,
      ].join('\n')
    case 'supabase-js':
      return [
        `import { createClient } from '@supabase/supabase-js'`,
        '',
        `const db = createClient(${script(url)}, ${script(key)})`,
        `const { data, error } = await db.from(${script(table)}).select().limit(10)`,
        `console.log(error ?? data)`,
      ].join('\n')
    case 'Python':
      return [
        'import requests  # pip install requests',
        '',
        'rows = requests.get(',
        `    ${script(`${url}/rest/v1/${encodeURIComponent(table)}`)},`,
        `    headers={'apikey': ${script(key)}},`,
        `    params={'select': '*', 'limit': 10},`,
        ').json()',
        'print(rows)',
      ].join('\n')
    case 'psql':
      return [
        `socle login --url ${shell(origin)}`,
        `socle use ${project}`,
        `socle db psql -- -c ${shell(`select * from ${identifier(table)} limit 10`)}`,
      ].join('\n')
  }
}

/** Quotes a word of a shell's command. */
function shell(text: string): string {
  return /^[\w.:/@-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`
}

/** Quotes a text of JavaScript and Python. */
function script(text: string): string {
  return `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'").replaceAll('\n', '\\n').replaceAll('\r', '\\r')}'`
}
