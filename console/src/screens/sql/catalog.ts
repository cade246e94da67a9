import { useQueries, useQuery } from '@tanstack/react-query'
import { api, inProject, read } from '../../api/client'
import type { Names } from '../../components/CodeEditor'
import { mask } from './statement'

const pageSize = 100
const mostPages = 20
const mostMentioned = 12 // tables whose columns are loaded at once
const fresh = 60_000 // ms

interface Tables {
  names: string[] // schema.table
  uuids: Record<string, string>
}

async function tablesOf(project: string): Promise<Tables> {
  const all: Tables = { names: [], uuids: {} }
  for (let page = 1, pages = 1; page <= Math.min(pages, mostPages); page++) {
    const { content, metadata } = await read(api.GET('/tables', {
      params: { header: inProject(project), query: { page, limit: pageSize } },
    }))
    all.names.push(...content.map((t) => `${t.schema}.${t.name}`))
    Object.assign(all.uuids, metadata.uuids)
    pages = metadata.totalPages
  }

  return all
}

/** Returns names for completion: all tables, and the columns of those that the text mentions. */
export function useCatalog(project: string, text: string): Names | undefined {
  const { data } = useQuery({
    queryKey: ['tables', project, 'catalog'], queryFn: () => tablesOf(project), staleTime: fresh,
  })
  const words = new Set(mask(text).toLowerCase().match(/\w+/g) ?? [])
  const mentioned = data?.names.filter((n) => words.has(tableOf(n).toLowerCase())).slice(0, mostMentioned) ?? []

  return useQueries({
    queries: mentioned.map((name) => ({
      queryKey: ['tables', project, data?.uuids[name] ?? name, 'columns'],
      queryFn: () => read(api.GET('/tables/{fullTableName}/columns', {
        params: { header: inProject(project), path: { fullTableName: data?.uuids[name] ?? name } },
      })),
      staleTime: fresh,
    })),
    combine: (columns) => {
      if (data === undefined) return undefined

      const known = new Map(mentioned.map((name, i) => [name, columns[i]?.data?.content.map((c) => c.name) ?? []]))
      return namesOf(data.names, known)
    },
  })
}

function namesOf(names: string[], columns: Map<string, string[]>): Names {
  const tables: Record<string, Record<string, string[]>> = {}
  for (const name of names) {
    const schema = name.slice(0, name.indexOf('.'))
    tables[schema] ??= {}
    tables[schema][tableOf(name)] = columns.get(name) ?? []
  }

  return {
    tables,
    columns: [...columns].flatMap(([table, list]) =>
      list.map((label) => ({ label, detail: tableOf(table), type: 'property', boost: 10 }))),
  }
}

const tableOf = (name: string) => name.slice(name.indexOf('.') + 1)
