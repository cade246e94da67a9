import { useParams } from '@tanstack/react-router'
import { useQuery } from '@tanstack/react-query'
import { texts } from '#texts/organization'
import { api, read } from '../../api/client'
import { Badge } from '../../components/Bits'
import { Page } from '../../components/Page'
import { roleName, roles } from '../../components/Roles'
import { Loaded } from '../../components/States'
import { Tabs } from '../../components/Tabs'
import { useURLState } from '../../url'
import { Invitations } from './Invitations'
import { Members } from './Members'
import { OrganizationList } from './OrganizationList'
import { OrganizationProjects } from './OrganizationProjects'
import { OrganizationSettings } from './OrganizationSettings'

const tabs = [
  { id: 'members', text: texts.members },
  { id: 'projects', text: texts.projects },
  { id: 'invitations', text: texts.invitations },
  { id: 'settings', text: texts.settings },
  { id: 'all', text: texts.allOrganizations },
]

/** People who share projects. */
export function Organization() {
  const { organization } = useParams({ strict: false }) as { organization: string }
  const [tab] = useURLState('tab', 'members')
  const query = useQuery({
    queryKey: ['organization', organization],
    queryFn: () => read(api.GET('/organizations/{organizationUUID}', {
      params: { path: { organizationUUID: organization } },
    })),
  })
  const content = query.data?.content
  const manages = content !== undefined && content.roleId <= roles.admin
  const visible = tabs.filter(({ id }) => id !== 'invitations' || content === undefined || manages)

  return (
    <Page title={content?.name ?? '…'} lead={texts.peopleWhoShareProjects}
      {...(content && { actions: <Badge>{texts.youAreRoleId(roleName(content.roleId))}</Badge> })}>
      <Tabs label={texts.organization} tabs={visible.map(({ id, text }) => ({
        text, active: id === tab, to: '.', search: (id === 'members' ? {} : { tab: id }) as never,
      }))} />
      {tab === 'all' ? <OrganizationList current={organization} /> : (
        <Loaded query={query}>
          {({ content: o }) => (
            <>
              {tab === 'members' && <Members organization={o} />}
              {tab === 'projects' && <OrganizationProjects organization={o} />}
              {tab === 'invitations' && <Invitations organization={o} />}
              {tab === 'settings' && <OrganizationSettings organization={o} />}
            </>
          )}
        </Loaded>
      )}
    </Page>
  )
}
