import { useQuery } from '@tanstack/react-query'
import { readRows, writeRows } from '../../components/ownerSQL'
import { tableIdentifier } from '../../components/sqlText'
import { listTables } from '../../components/tableList'
import { queries } from '../../queries'

const publication = 'supabase_realtime'

export interface Watched {
  fullName: string // schema.table
  isFollowed: boolean
}

/** Lists the tables that can be followed, and whether the publication has them. */
export function useWatched(project: string) {
  return useQuery({
    queryKey: ['watched', project],
    queryFn: async (): Promise<Watched[]> => {
      const [tables, published] = await Promise.all([
        listTables(project),
        readRows(project, `select schemaname || '.' || tablename from pg_publication_tables where pubname = '${publication}'`),
      ])
      const followed = new Set(published.map((r) => r[0]))
      return tables.map((t) => ({ fullName: t.fullName, isFollowed: followed.has(t.fullName) }))
    },
  })
}

/** Adds a table to the publication, or takes it out. */
export async function setFollowed(project: string, fullName: string, follows: boolean): Promise<void> {
  await writeRows(project, `alter publication ${publication} ${follows ? 'add' : 'drop'} table ${tableIdentifier(fullName)}`)
  await queries.invalidateQueries({ queryKey: ['watched', project] })
}
