// Writes src/api/access.ts: the role that each operation needs, as docs/openapi.json states it.
import { readFileSync, writeFileSync } from 'node:fs'

const { paths } = JSON.parse(readFileSync(new URL('../docs/openapi.json', import.meta.url), 'utf8'))
const sentence = /Requires the role of (\w+) or higher in the (?:project's )?organization\./
const administrators = 'Requires an administrator of the instance.'
const lines = []

for (const methods of Object.values(paths)) {
  for (const { operationId, description = '' } of Object.values(methods)) {
    const role = description.includes(administrators) ? 'administrator' : sentence.exec(description)?.[1]
    if (role !== undefined && role !== 'viewer') lines.push(`  ${operationId}: '${role}',`)
  }
}
if (lines.length < 50) throw new Error('docs/openapi.json no longer states roles in the known words')

writeFileSync(new URL('src/api/access.ts', import.meta.url), `/** The role that an operation needs, if a viewer's does not suffice. Generated from docs/openapi.json. */
export const access = {
${lines.join('\n')}
} as const
`)
