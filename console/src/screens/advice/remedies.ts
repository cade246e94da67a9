/** What to do about a finding: a statement to review, and where the object is. */

import type { Schemas } from '../../api/client'

export type Finding = Schemas['Finding']

export interface Remedy {
  sql: string | null // to review and run; null if only a person can decide
  table: string | null // schema.table
  tab: string // of the table's structure
}

/** Reads the object of a finding: "name on schema.table", "schema.table" or "schema.function(types)". */
export function subjectOf(object: string): { name: string | null; relation: string } {
  const parts = /^("(?:[^"]|"")+"|[^" ]+) on (.+)$/s.exec(object)
  return parts === null ? { name: null, relation: object } : { name: parts[1] ?? null, relation: parts[2] ?? '' }
}

/** Returns "schema.table" without SQL's quotes, as the API names a table; null for a function. */
export function tableOf(relation: string): string | null {
  const parts = /^("(?:[^"]|"")+"|[^".]+)\.("(?:[^"]|"")+"|[^".(]+)$/s.exec(relation)
  if (parts === null) return null

  return `${bare(parts[1] ?? '')}.${bare(parts[2] ?? '')}`
}

const bare = (name: string) => (name.startsWith('"') ? name.slice(1, -1).replaceAll('""', '"') : name)

/** Returns the remedy of a finding. columns are those of a foreign key, if they are known. */
export function remedyOf({ code, object }: Finding, columns: string[] = []): Remedy {
  const { name, relation } = subjectOf(object)
  const table = tableOf(relation)
  const on = (tab: string, sql: string | null): Remedy => ({ sql, table, tab })

  switch (code) {
    case 'rls_disabled':
    case 'rls_disabled_closed':
    case 'policies_without_rls':
      return on('policies', `alter table ${relation} enable row level security;`)
    case 'rls_without_policy':
    case 'policy_reads_for_all':
      return on('policies', null)
    case 'policies_without_grants':
      return on('grants', `grant select on ${relation} to authenticated;`)
    case 'policy_writes_for_all':
      return on('policies', `alter policy ${name} on ${relation} to authenticated;`)
    case 'security_definer_view':
      return { sql: `alter view ${relation} set (security_invoker = true);`, table: null, tab: '' }
    case 'security_definer_function':
      return { sql: `alter function ${relation} security invoker;`, table: null, tab: '' }
    case 'function_search_path':
      return { sql: `alter function ${relation} set search_path = '';`, table: null, tab: '' }
    case 'materialized_view_exposed':
      return { sql: `revoke select on ${relation} from anon, authenticated;`, table: null, tab: '' }
    case 'foreign_key_without_index':
      return on('indexes', columns.length === 0 ? null : `create index on ${relation} (${columns.join(', ')});`)
    case 'table_without_primary_key':
      return on('constraints', `alter table ${relation} add column id bigint generated always as identity primary key;`)
    case 'invalid_index':
      return on('indexes', `drop index ${relation.slice(0, dotOf(relation))}.${name};`)
    case 'constraint_not_valid':
      return on('constraints', `alter table ${relation} validate constraint ${name};`)
    default: // of a newer server
      return on('columns', null)
  }
}

function dotOf(relation: string): number {
  return relation.startsWith('"') ? relation.indexOf('".') + 1 : relation.indexOf('.')
}
