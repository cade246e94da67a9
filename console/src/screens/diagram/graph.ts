import { useQuery } from '@tanstack/react-query'
import { api, inProject, read } from '../../api/client'
import { listTables, type Entry } from '../../components/tableList'
import { queries } from '../../queries'
import type { Table } from './layout'

const atOnce = 6 // requests
const freshFor = 60_000 // ms

/** Tables of one schema beyond this number make no picture that a person can read. */
export const mostTables = 200

/** Lists the tables of a project, for the choice of a schema. */
export function useSchemas(project: string) {
  return useQuery({ queryKey: ['tables', project, 'all'], queryFn: () => listTables(project) })
}

/** Loads the columns of a schema's tables. Tables of other schemas that they refer to come without columns. */
export function useGraph(project: string, entries: Entry[], schema: string) {
  const wanted = entries.filter((t) => t.schema === schema).slice(0, mostTables)
  return useQuery({
    queryKey: ['tables', project, 'diagram', schema, wanted.map((t) => t.uuid)],
    queryFn: async (): Promise<Table[]> => {
      const tables: Table[] = []
      for (let i = 0; i < wanted.length; i += atOnce) {
        tables.push(...await Promise.all(wanted.slice(i, i + atOnce).map((t) => loadTable(project, t))))
      }
      return [...tables, ...outside(tables)]
    },
  })
}

async function loadTable(project: string, { uuid, fullName }: Entry): Promise<Table> {
  const { content } = await queries.fetchQuery({
    queryKey: ['tables', project, uuid, 'columns'],
    staleTime: freshFor,
    queryFn: () => read(api.GET('/tables/{fullTableName}/columns', {
      params: { header: inProject(project), path: { fullTableName: uuid } },
    })),
  })

  return {
    name: fullName,
    columns: content.map(({ name, type, primary, referenceTable, referenceColumn }) => ({
      name, type, primary,
      reference: referenceTable !== null && referenceColumn !== null ? { table: referenceTable, column: referenceColumn } : null,
    })),
  }
}

function outside(tables: Table[]): Table[] {
  const known = new Set(tables.map((t) => t.name))
  const names = tables.flatMap((t) => t.columns.flatMap((c) => (c.reference === null ? [] : [c.reference.table])))

  return [...new Set(names)].filter((name) => !known.has(name)).map((name) => ({ name, columns: [] }))
}
