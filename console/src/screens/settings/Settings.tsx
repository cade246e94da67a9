import { useParams } from '@tanstack/react-router'
import { Guarded } from '../../components/Guarded'
import { Page } from '../../components/Page'
import { Tabs } from '../../components/Tabs'
import { useURLState } from '../../url'
import { AuthSettings } from './AuthSettings'
import { Danger } from './Danger'
import { General } from './General'
import { QuotaSettings } from './QuotaSettings'
import { RestSettings } from './RestSettings'

const tabs = [
  { id: 'general', text: 'General' },
  { id: 'rest', text: 'Rows API' },
  { id: 'auth', text: 'End users' },
  { id: 'quota', text: 'Quota' },
  { id: 'danger', text: 'Pause and delete' },
]

/** What can be set about a project. */
export function Settings() {
  const { project } = useParams({ strict: false }) as { project: string }
  const [tab] = useURLState('tab', 'general')

  return (
    <Page title="Settings">
      <Tabs label="Settings" tabs={tabs.map(({ id, text }) => ({
        text, active: id === tab, to: '.', search: (id === 'general' ? {} : { tab: id }) as never,
      }))} />
      {tab === 'general' && <General project={project} />}
      {tab === 'rest' && <Guarded needs="getRestSettings"><RestSettings project={project} /></Guarded>}
      {tab === 'auth' && <Guarded needs="getAuthSettings"><AuthSettings project={project} /></Guarded>}
      {tab === 'quota' && <QuotaSettings project={project} />}
      {tab === 'danger' && <Danger project={project} />}
    </Page>
  )
}
