import { useQuery } from '@tanstack/react-query'
import { texts } from '#texts/settings'
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
          { name: 'max_database_bytes', label: texts.database, kind: 'size',
            hint: texts.usedWithIndexesBeyondThe(formatBytes(q.databaseBytes)) },
          { name: 'max_bytes', label: texts.filesInAll, kind: 'size',
            hint: texts.usedBeyondTheLimitUploads(formatBytes(q.bytes)) },
          { name: 'max_files', label: texts.numberOfFiles, kind: 'number', hint: texts.filesUsed(q.files.toLocaleString()) },
        ]

        return (
          <SettingsForm title={texts.quota} specs={specs} values={requestNames(q)} needs="updateQuota"
            lead={texts.sizesSuchAsThe500MB}
            save={async (body) => {
              await read(api.PUT('/projects/{projectUUID}/quota', { params: { path: { projectUUID: project } }, body }))
              await queries.invalidateQueries({ queryKey: ['quota', project] })
            }} />
        )
      }}
    </Loaded>
  )
}
