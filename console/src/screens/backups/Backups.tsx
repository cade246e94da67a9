import { useQuery } from '@tanstack/react-query'
import { texts } from '#texts/backups'
import { api, inProject, read } from '../../api/client'
import { Card, Page } from '../../components/Page'
import { useFilters, useProject } from '../../components/Filters'
import { SearchTabs } from '../../components/SearchTabs'
import { Time } from '../../components/Bits'
import { BackupList } from './BackupList'
import { Restores } from './Restores'
import { Schedule } from './Schedule'

const tabs = [
  { value: 'backups', text: texts.backups },
  { value: 'schedule', text: texts.schedule },
  { value: 'restores', text: texts.restores },
]

/** Backups of a project, their schedule, and restores. */
export function Backups() {
  const project = useProject()
  const [{ tab }] = useFilters('tab')
  const current = tabs.some((t) => t.value === tab) ? tab : 'backups'

  return (
    <Page title={texts.backups} lead={<LastProof project={project} />}>
      <SearchTabs label={texts.backups} current={current} tabs={tabs} />
      {current === 'backups' && <BackupList project={project} />}
      {current === 'schedule' && <Card title={texts.schedule}><Schedule project={project} /></Card>}
      {current === 'restores' && <Restores project={project} />}
    </Page>
  )
}

/** Says when a backup was last restored as a test, which is what counts. */
function LastProof({ project }: { project: string }) {
  const query = useQuery({
    queryKey: ['backups', project, 'newest'],
    queryFn: () => read(api.GET('/backups', {
      params: { header: inProject(project), query: { sort: 'createdAt', order: 'desc', limit: 20 } },
    })),
    refetchInterval: 15_000,
  })
  if (query.data === undefined) return texts.databaseFilesAndFormsOf

  const { content, metadata } = query.data
  const proven = content.find((b) => metadata.details[b.uuid]?.provenAt)
  if (proven === undefined) return texts.noBackupIsProvenA

  return <>{texts.theNewestProvenBackupHas(<Time at={proven.startedAt} />)}</>
}
