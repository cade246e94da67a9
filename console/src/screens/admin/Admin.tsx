import { useParams } from '@tanstack/react-router'
import { texts } from '#texts/admin'
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
  { id: 'users', text: texts.users },
  { id: 'settings', text: texts.settings },
  { id: 'environment', text: texts.environment },
  { id: 'health', text: texts.health },
  { id: 'audit', text: texts.auditLog },
]

/** The instance, for its administrators. */
export function Admin() {
  const { section } = useParams({ strict: false }) as { section: string }

  if (currentUser()?.roleId !== roles.administrator) {
    return <Empty title={texts.yourRoleDoesNotAllow}>{texts.administratorsOfTheInstanceSee}</Empty>
  }

  return (
    <Page title={texts.administration} lead={texts.thisInstanceItsUsersSettings}>
      <Tabs label={texts.administration} tabs={sections.map(({ id, text }) => ({
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
