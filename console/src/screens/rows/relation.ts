/** What the grid knows of a table or view. */

import { useQuery } from '@tanstack/react-query'
import { api, ApiError, inProject, read } from '../../api/client'
import { describe } from '../../components/relations'
import { kindOf, splitName, type Column } from './types'

export interface Relation {
  schema: string
  name: string
  fullName: string
  isView: boolean
  columns: Column[]
  key: string[]
  canUpdate: boolean
  canInsert: boolean
  rowLevelSecurity: boolean
  comment: string
  estimatedRows: number
  refusal?: string // why the signed-in user may only read
}

/** Loads a table or view by "schema.name". */
export function useRelation(project: string, fullName: string) {
  return useQuery({
    queryKey: ['tables', project, fullName, 'relation'],
    staleTime: 60_000,
    queryFn: () => loadRelation(project, fullName),
  })
}

export async function loadRelation(project: string, fullName: string): Promise<Relation> {
  try {
    return await loadTable(project, fullName)
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== 404) throw error
    const view = await loadView(project, fullName)
    if (view === null) throw error

    return view
  }
}

async function loadTable(project: string, fullName: string): Promise<Relation> {
  const header = inProject(project)
  const [details, columns, enums] = await Promise.all([
    read(api.GET('/tables/{tableUUID}', { params: { path: { tableUUID: fullName }, header } })),
    read(api.GET('/tables/{fullTableName}/columns', { params: { path: { fullTableName: fullName }, header } })),
    read(api.GET('/enums', { params: { header, query: { limit: 100 } } })),
  ])
  const { comments } = columns.metadata
  const values = (type: string) => enums.content.find((e) => e.name === type || `${e.schema}.${e.name}` === type)?.values

  return {
    schema: details.content.schema,
    name: details.content.name,
    fullName,
    isView: false,
    columns: columns.content.map((c) => ({
      name: c.name,
      type: c.type,
      kind: kindOf(c.type, values(c.type)),
      notNull: c.notNull,
      primary: c.primary,
      defaultValue: c.defaultValue,
      reference: c.referenceTable !== null && c.referenceColumn !== null
        ? { table: c.referenceTable, column: c.referenceColumn }
        : null,
      values: values(c.type) ?? [],
      comment: comments[c.name] ?? '',
    })),
    key: details.metadata.primaryKey,
    canUpdate: details.metadata.primaryKey.length > 0,
    canInsert: true,
    rowLevelSecurity: details.metadata.rowLevelSecurity,
    comment: details.metadata.comment,
    estimatedRows: details.content.estimatedRows,
  }
}

/** Loads a view. The platform API lists tables only. */
async function loadView(project: string, fullName: string): Promise<Relation | null> {
  const [schema, name] = splitName(fullName)
  const { definitions, paths } = await describe(project, schema)
  const definition = definitions[name]
  if (definition === undefined) return null

  const columns = Object.entries(definition.properties ?? {}).map(([column, p]): Column => {
    const note = p.description ?? ''
    const fk = /<fk table='([^']*)' column='([^']*)'\/>/.exec(note)
    return {
      name: column,
      type: typeNames[p.format ?? ''] ?? p.format ?? 'text',
      kind: kindOf(p.format ?? 'text', p.enum),
      notNull: false,
      primary: note.includes('<pk/>'),
      defaultValue: '',
      reference: fk ? { table: `${schema}.${fk[1]}`, column: fk[2] ?? '' } : null,
      values: p.enum ?? [],
      comment: '',
    }
  })
  const key = columns.filter((c) => c.primary).map((c) => c.name)
  const methods = paths[`/${name}`] ?? {}

  return {
    schema, name, fullName, isView: true, columns, key,
    canUpdate: key.length > 0 && 'patch' in methods,
    canInsert: 'post' in methods,
    rowLevelSecurity: false,
    comment: definition.description ?? '',
    estimatedRows: 0,
  }
}

const typeNames: Record<string, string> = {
  int64: 'bigint', int32: 'integer', int16: 'smallint', 'timestamp with time zone': 'timestamptz',
  'timestamp without time zone': 'timestamp', 'character varying': 'varchar',
}
