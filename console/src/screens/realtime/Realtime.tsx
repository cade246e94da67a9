import { useProject } from '../../components/Filters'
import { Page } from '../../components/Page'
import { SearchTabs } from '../../components/SearchTabs'
import { useURLState } from '../../url'
import { ChangeLog } from './ChangeLog'
import { FollowedTables } from './FollowedTables'
import { OpenChannels } from './OpenChannels'

const tabs = [{ value: 'tables', text: 'Tables' }, { value: 'log', text: 'Live changes' }, { value: 'now', text: 'Open channels' }]

/** Which tables can be followed, and what happens in them now. */
export function Realtime() {
  const project = useProject()
  const [tab] = useURLState('tab', 'tables')

  return (
    <Page title="Realtime" lead="Applications hear of changed rows at once, each user of those that policies let them read.">
      <SearchTabs label="Realtime" current={tab} tabs={tabs} />
      {tab === 'log' ? <ChangeLog project={project} />
        : tab === 'now' ? <OpenChannels project={project} />
        : <FollowedTables project={project} />}
    </Page>
  )
}
