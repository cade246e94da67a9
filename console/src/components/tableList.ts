/** The tables of a project, as lists and pictures of them need it. */

import { api, inProject, read } from '../api/client'
import { queries } from '../queries'
import { allPages, pageLimit } from './pages'

/** A table or view. */
export interface Entry {
  schema: string
  name: string
  fullName: string
  uuid: string
  isView: boolean
  rows: number
  size: string
}

/** Lists the tables of a project, all pages. */
export async function listTables(project: string): Promise<Entry[]> {
  const pages = await allPages((number) => page(project, number))

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

/** Returns the path of a table's screen; the name may have any characters. */
export const tablePath = (project: string, name: string, rest = '') =>
  `/projects/${project}/tables/${encodeURIComponent(name)}${rest}`

/** Loads what is known of a project's tables again. */
export const refreshTables = (project: string) => queries.invalidateQueries({ queryKey: ['tables', project] })
