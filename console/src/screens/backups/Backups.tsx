import { useQuery } from '@tanstack/react-query'
import { api, inProject, read } from '../../api/client'
import { Card, Page } from '../../components/Page'
import { useFilters, useProject } from '../../components/Filters'
import { SearchTabs } from '../../components/SearchTabs'
import { Time } from '../../components/Bits'
import { BackupList } from './BackupList'
import { Restores } from './Restores'
import { Schedule } from './Schedule'

const tabs = [
  { value: 'backups', text: 'Backups' },
  { value: 'schedule', text: 'Schedule' },
  { value: 'restores', text: 'Restores' },
]

/** Backups of a project, their schedule, and restores. */
export function Backups() {
  const project = useProject()
  const [{ tab }] = useFilters('tab')
  const current = tabs.some((t) => t.value === tab) ? tab : 'backups'

  return (
    <Page title="Backups" lead={<LastProof project={project} />}>
      <SearchTabs label="Backups" current={current} tabs={tabs} />
      {current === 'backups' && <BackupList project={project} />}
      {current === 'schedule' && <Card title="Schedule"><Schedule project={project} /></Card>}
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
  if (query.data === undefined) return 'Database, files and forms of the project, restored as a test to prove them.'

  const { content, metadata } = query.data
  const proven = content.find((b) => metadata.details[b.uuid]?.provenAt)
  if (proven === undefined) return 'No backup is proven. A proof restores a backup into a temporary database.'

  return <>The newest proven backup has the state of <Time at={proven.startedAt} />.</>
}
