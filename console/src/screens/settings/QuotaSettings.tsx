import { useQuery } from '@tanstack/react-query'
import { api, read } from '../../api/client'
import { formatBytes } from '../../components/Bits'
import { Loaded } from '../../components/States'
import { queries } from '../../queries'
import { SettingsForm } from '../../components/SettingsForm'
import { requestNames, type Spec } from '../../components/specs'

/** Limits of the project's size. Administrators of the instance change them. */
export function QuotaSettings({ project }: { project: string }) {
  const query = useQuery({
    queryKey: ['quota', project],
    queryFn: () => read(api.GET('/projects/{projectUUID}/quota', { params: { path: { projectUUID: project } } })),
  })

  return (
    <Loaded query={query}>
      {({ content: q }) => {
        const specs: Spec[] = [
          { name: 'max_database_bytes', label: 'Database', kind: 'size',
            hint: `${formatBytes(q.databaseBytes)} used, with indexes. Beyond the limit, operations that enlarge the database fail.` },
          { name: 'max_bytes', label: 'Files in all', kind: 'size',
            hint: `${formatBytes(q.bytes)} used. Beyond the limit, uploads fail.` },
          { name: 'max_files', label: 'Number of files', kind: 'number', hint: `${q.files.toLocaleString()} used.` },
        ]

        return (
          <SettingsForm title="Quota" specs={specs} values={requestNames(q)} needs="updateQuota"
            lead="Sizes such as 500 MB or 10 GB. Existing files and rows stay, even beyond the limit."
            save={async (body) => {
              await read(api.PUT('/projects/{projectUUID}/quota', { params: { path: { projectUUID: project } }, body }))
              await queries.invalidateQueries({ queryKey: ['quota', project] })
            }} />
        )
      }}
    </Loaded>
  )
}
