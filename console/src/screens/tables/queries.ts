import { useQuery } from '@tanstack/react-query'
import { api, inProject, read, type Schemas } from '../../api/client'
import { queries } from '../../queries'
import { describe } from '../rows/relation'

export interface Entry {
  schema: string
  name: string
  fullName: string
  uuid: string
  isView: boolean
  rows: number
  size: string
}

const pageLimit = 100 // the API's maximum
const atOnce = 5 // pages
const maxPages = 100

/** Lists the tables of a project, all pages, and the views of the exposed schema. The API cannot search in names. */
export function useTables(project: string) {
  return useQuery({ queryKey: ['tables', project, 'all'], queryFn: () => listTables(project) })
}

async function listTables(project: string): Promise<Entry[]> {
  const first = await page(project, 1)
  const pages = [first]
  const last = Math.min(first.metadata.totalPages, maxPages)
  for (let n = 2; n <= last; n += atOnce) {
    const numbers = Array.from({ length: Math.min(atOnce, last - n + 1) }, (_, i) => n + i)
    pages.push(...await Promise.all(numbers.map((number) => page(project, number))))
  }

  return pages.flatMap(({ content, metadata }) => content.map((t): Entry => {
    const fullName = `${t.schema}.${t.name}`
    return {
      schema: t.schema, name: t.name, fullName, uuid: metadata.uuids[fullName] ?? fullName, isView: false,
      rows: t.estimatedRows, size: t.totalSize,
    }
  }))
}

function page(project: string, number: number) {
  return read(api.GET('/tables', {
    params: { header: inProject(project), query: { page: number, limit: pageLimit, sort: 'name' } },
  }))
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

export const refreshTables = (project: string) => queries.invalidateQueries({ queryKey: ['tables', project] })

export type Dependent = Schemas['Dependent']
