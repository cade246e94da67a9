import { texts } from '#texts/realtime'
import { useProject } from '../../components/Filters'
import { Page } from '../../components/Page'
import { SearchTabs } from '../../components/SearchTabs'
import { useURLState } from '../../url'
import { ChangeLog } from './ChangeLog'
import { FollowedTables } from './FollowedTables'
import { OpenChannels } from './OpenChannels'

const tabs = [{ value: 'tables', text: texts.tables }, { value: 'log', text: texts.liveChanges }, { value: 'now', text: texts.openChannels }]

/** Which tables can be followed, and what happens in them now. */
export function Realtime() {
  const project = useProject()
  const [tab] = useURLState('tab', 'tables')

  return (
    <Page title={texts.realtime} lead={texts.applicationsHearOfChangedRows}>
      <SearchTabs label={texts.realtime} current={tab} tabs={tabs} />
      {tab === 'log' ? <ChangeLog project={project} />
        : tab === 'now' ? <OpenChannels project={project} />
        : <FollowedTables project={project} />}
    </Page>
  )
}
