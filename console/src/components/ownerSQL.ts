/** Statements of screens whose subject has no operations of its own: functions and catalogs of the database. */

import { textOf } from './exact'
import { runSQL } from './runSQL'

type Cell = string | null

const maxRows = 1000

/** Reads rows as texts. */
export const readRows = (project: string, query: string, parameters: Cell[] = []) => run(project, query, parameters, true)

/** Runs a statement that writes, and returns its rows. */
export const writeRows = (project: string, query: string, parameters: Cell[] = []) => run(project, query, parameters, false)

async function run(project: string, query: string, parameters: Cell[], readOnly: boolean): Promise<Cell[][]> {
  const { results } = await runSQL(project, { query, parameters, readOnly, maxRows })
  return (results.at(-1)?.rows ?? []).map((row) => row.map(textOf))
}
