import { useQuery } from '@tanstack/react-query'
import { api, inProject, read, type Schemas } from '../../api/client'
import { listTables, type Entry } from '../../components/tableList'
import { describe } from '../../components/relations'

/** Lists the tables of a project, all pages, and the views of the exposed schema. The API cannot search in names. */
export function useTables(project: string) {
  return useQuery({ queryKey: ['tables', project, 'all'], queryFn: () => listTables(project) })
}

/** Lists the views that the rows API shows in the schema public; none if it cannot be asked. */
export function useViews(project: string, tables: Entry[] | undefined) {
  return useQuery({
    queryKey: ['tables', project, 'views', tables?.length],
    enabled: tables !== undefined,
    retry: false,
    queryFn: async (): Promise<Entry[]> => {
      const { definitions } = await describe(project, 'public')
      const known = new Set(tables?.filter((t) => t.schema === 'public').map((t) => t.name))
      return Object.keys(definitions).filter((name) => !known.has(name)).map((name) => ({
        schema: 'public', name, fullName: `public.${name}`, uuid: '', isView: true, rows: 0, size: '',
      }))
    },
  })
}

/** Row level security of one table, which the list does not tell. */
export function useSecurity(project: string, entry: Entry) {
  return useQuery({
    queryKey: ['tables', project, entry.fullName, 'details'],
    enabled: !entry.isView,
    staleTime: 60_000,
    queryFn: () => read(api.GET('/tables/{tableUUID}', {
      params: { path: { tableUUID: entry.uuid }, header: inProject(project) },
    })),
  })
}

export type Dependent = Schemas['Dependent']
