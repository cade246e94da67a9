/** Calls of functions, as SQL and as requests to the rows API. */

import { texts } from '#texts/functions'
import type { Schemas } from '../../api/client'
import { identifier } from '../../components/sqlText'

export type FunctionInfo = Schemas['FunctionInfo']

/** Selects a function's definition by its signature. */
export const definitionQuery = "select pg_get_functiondef($1::text::regprocedure) || ';' as definition"

/** Returns schema.name(types), as regprocedure takes it. */
export const signatureOf = (f: FunctionInfo) => `${identifier(f.schema)}.${identifier(f.name)}(${f.arguments})`

/** Returns the statement that calls a function, with a parameter for each argument. */
export function callOf(f: FunctionInfo): string {
  const args = f.parameters.map((p, i) => `${identifier(p.name)} => $${i + 1}::text::${p.type}`)
  return `select * from ${identifier(f.schema)}.${identifier(f.name)}(${args.join(', ')})`
}

/** Returns the body of a request to /rpc: texts, but JSON where the argument is JSON. */
export function rpcBody(f: FunctionInfo, values: (string | null)[]): Record<string, unknown> {
  return Object.fromEntries(f.parameters.map((p, i) => [p.name, valueOf(p.type, values[i] ?? null)]))
}

function valueOf(type: string, text: string | null): unknown {
  if (text === null || !/^jsonb?$/.test(type)) return text

  return JSON.parse(text)
}

export interface Draft {
  schema: string
  name: string
  parameters: { name: string; type: string }[]
  returnType: string
  language: string
  definition: string
  execute: ('anon' | 'authenticated')[]
}

export interface Template {
  title: string
  text: string
  draft: Draft
}

const base: Draft = {
  schema: 'public', name: '', parameters: [], returnType: 'integer', language: 'sql', definition: '', execute: [],
}

/** Functions to begin with. */
export const templates: Template[] = [
  { title: texts.query, text: texts.oneSQLStatementWithParameters, draft: {
    ...base, parameters: [{ name: 'a', type: 'integer' }, { name: 'b', type: 'integer' }], definition: 'select a + b',
  } },
  { title: texts.rowsOfATable, text: texts.returnsRowsTheRowsAPI, draft: {
    ...base, parameters: [{ name: 'words', type: 'text' }], returnType: 'setof my_table',
    definition: "select * from my_table where title ilike '%' || words || '%'",
  } },
  { title: texts.procedureCode, text: texts.plPgSQLWithVariablesConditions, draft: {
    ...base, language: 'plpgsql', parameters: [{ name: 'amount', type: 'numeric' }], returnType: 'numeric',
    definition: "declare\n  result numeric;\nbegin\n  if amount < 0 then\n    raise exception 'amount is negative';\n" +
      '  end if;\n\n  result := round(amount * 1.2, 2);\n  return result;\nend',
  } },
  { title: texts.trigger, text: texts.setsAColumnWhenA, draft: {
    ...base, name: 'set_updated_at', language: 'plpgsql', returnType: 'trigger',
    definition: 'begin\n  new.updated_at := now();\n  return new;\nend',
  } },
]
