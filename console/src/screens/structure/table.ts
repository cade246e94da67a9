import { useParams } from '@tanstack/react-router'
import { useQuery } from '@tanstack/react-query'
import { api, inProject, read } from '../../api/client'
import { queries } from '../../queries'

/** A table, as all tabs of the screen need it. */
export interface TableRef {
  project: string
  uuid: string
  name: string // schema.name
  schema: string
}

const mostTables = 100 // the most that one page of a list has

/** Loads the table that the URL names. */
export function useTable() {
  const { project, table } = useParams({ strict: false }) as { project: string; table: string }
  const query = useQuery({
    queryKey: ['tables', project, table, 'info'],
    queryFn: () => read(api.GET('/tables/{tableUUID}', {
      params: { header: inProject(project), path: { tableUUID: table } },
    })),
  })

  return { project, table, query }
}

/** Returns the parameters of an operation on a table. */
export const onTable = (table: TableRef) => ({ header: inProject(table.project), path: { tableUUID: table.uuid } })

export function useColumns(table: { project: string; uuid: string }) {
  return useQuery({
    queryKey: ['tables', table.project, table.uuid, 'columns'],
    enabled: table.uuid !== '',
    queryFn: () => read(api.GET('/tables/{fullTableName}/columns', {
      params: { header: inProject(table.project), path: { fullTableName: table.uuid } },
    })),
  })
}

/** Full names of the project's first tables, for suggestions. */
export function useTableNames(project: string): string[] {
  const { data } = useQuery({
    queryKey: ['tables', project, 'names'],
    queryFn: () => read(api.GET('/tables', {
      params: { header: inProject(project), query: { limit: mostTables, sort: 'name' } },
    })),
  })

  return data?.content.map((t) => `${t.schema}.${t.name}`) ?? []
}

/** Reloads what screens show about a project's tables. */
export const reload = (project: string) => queries.invalidateQueries({ queryKey: ['tables', project] })
