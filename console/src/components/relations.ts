/** What the rows API says of the relations in a schema. */

import { sendJSON } from '../api/client'

interface Description {
  definitions: Record<string, {
    description?: string
    properties?: Record<string, { format?: string; enum?: string[]; description?: string }>
  }>
  paths: Record<string, object>
}

/** Loads what the rows API says of the relations in a schema; tables and views alike. */
export function describe(project: string, schema: string): Promise<Description> {
  return sendJSON<Description>(`/projects/${project}/rest/v1/`,
    schema === 'public' ? {} : { headers: { 'Accept-Profile': schema } })
}
