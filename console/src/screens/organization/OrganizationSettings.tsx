import { useState } from 'react'
import { useNavigate } from '@tanstack/react-router'
import { api, read, type Schemas } from '../../api/client'
import { Copyable } from '../../components/Bits'
import { Button } from '../../components/Button'
import { Confirm } from '../../components/Dialog'
import { Card } from '../../components/Page'
import { roles } from '../../components/Roles'
import { SettingsForm } from '../../components/SettingsForm'
import type { Spec } from '../../components/specs'
import { queries } from '../../queries'

type Organization = Schemas['Organization']

const specs: Spec[] = [{ name: 'name', label: 'Name', kind: 'text' }]

/** The organization's name, and the ways out. */
export function OrganizationSettings({ organization }: { organization: Organization }) {
  const navigate = useNavigate()
  const [act, setAct] = useState<'leave' | 'delete'>()
  const path = { organizationUUID: organization.uuid }
  const close = () => setAct(undefined)

  async function gone() {
    await queries.invalidateQueries()
    await navigate({ to: '/' })
  }

  return (
    <>
      <SettingsForm title="Organization" specs={specs} values={{ ...organization }}
        disabled={organization.roleId > roles.admin} save={async (changed) => {
          await read(api.PUT('/organizations/{organizationUUID}', { params: { path }, body: { name: String(changed.name) } }))
          await queries.invalidateQueries({ queryKey: ['organization', organization.uuid] })
          await queries.invalidateQueries({ queryKey: ['organizations'] })
        }} />
      <Card title="UUID"><Copyable value={organization.uuid} label="the organization's UUID" /></Card>
      <Card title="Leave organization" lead="You no longer reach its projects. The last owner cannot leave."
        actions={<Button look="danger" onClick={() => setAct('leave')}>Leave organization</Button>}>{null}</Card>
      {organization.roleId <= roles.owner && (
        <Card title="Delete organization" lead="Only without projects, and if it is no member's personal organization."
          actions={<Button look="danger" onClick={() => setAct('delete')}>Delete organization</Button>}>{null}</Card>
      )}
      {act === 'leave' && (
        <Confirm title="Leave organization" open action="Leave organization" onClose={close} onSubmit={async () => {
          await read(api.DELETE('/organizations/{organizationUUID}/membership', { params: { path } }))
          await gone()
        }}>
          You no longer reach the projects of <b>{organization.name}</b>, until somebody invites you again. What you created
          stays.
        </Confirm>
      )}
      {act === 'delete' && (
        <Confirm title="Delete organization" open name={organization.name} action="Delete organization" onClose={close}
          onSubmit={async () => {
            await read(api.DELETE('/organizations/{organizationUUID}', { params: { path } }))
            await gone()
          }}>
          <b>{organization.name}</b>, its memberships and its invitations are gone. This cannot be undone.
        </Confirm>
      )}
    </>
  )
}
