import { useParams } from '@tanstack/react-router'
import { currentUser } from '../../api/session'
import { Page } from '../../components/Page'
import { roles } from '../../components/Roles'
import { Empty } from '../../components/States'
import { Tabs } from '../../components/Tabs'
import { AuditLog } from './AuditLog'
import { Environment } from './Environment'
import { Health } from './Health'
import { InstanceSettings } from './InstanceSettings'
import { Users } from './Users'

const sections = [
  { id: 'users', text: 'Users' },
  { id: 'settings', text: 'Settings' },
  { id: 'environment', text: 'Environment' },
  { id: 'health', text: 'Health' },
  { id: 'audit', text: 'Audit log' },
]

/** The instance, for its administrators. */
export function Admin() {
  const { section } = useParams({ strict: false }) as { section: string }

  if (currentUser()?.roleId !== roles.administrator) {
    return <Empty title="Your role does not allow this">Administrators of the instance see this page.</Empty>
  }

  return (
    <Page title="Administration" lead="This instance: its users, settings and parts.">
      <Tabs label="Administration" tabs={sections.map(({ id, text }) => ({
        text, active: id === section, to: `/admin/${id}` as string,
      }))} />
      {section === 'users' && <Users />}
      {section === 'settings' && <InstanceSettings />}
      {section === 'environment' && <Environment />}
      {section === 'health' && <Health />}
      {section === 'audit' && <AuditLog />}
    </Page>
  )
}
