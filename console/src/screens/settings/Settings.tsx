import { useParams } from '@tanstack/react-router'
import { texts } from '#texts/settings'
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
  { id: 'general', text: texts.general },
  { id: 'rest', text: texts.rowsAPI },
  { id: 'auth', text: texts.endUsers },
  { id: 'quota', text: texts.quota },
  { id: 'danger', text: texts.pauseAndDelete },
]

/** What can be set about a project. */
export function Settings() {
  const { project } = useParams({ strict: false }) as { project: string }
  const [tab] = useURLState('tab', 'general')

  return (
    <Page title={texts.settings}>
      <Tabs label={texts.settings} tabs={tabs.map(({ id, text }) => ({
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
