import { useState } from 'react'
import { useNavigate } from '@tanstack/react-router'
import { texts } from '#texts/organization'
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

const specs: Spec[] = [{ name: 'name', label: texts.name, kind: 'text' }]

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
      <SettingsForm title={texts.organization} specs={specs} values={{ ...organization }}
        disabled={organization.roleId > roles.admin} save={async (changed) => {
          await read(api.PUT('/organizations/{organizationUUID}', { params: { path }, body: { name: String(changed.name) } }))
          await queries.invalidateQueries({ queryKey: ['organization', organization.uuid] })
          await queries.invalidateQueries({ queryKey: ['organizations'] })
        }} />
      <Card title={texts.uuid}><Copyable value={organization.uuid} label={texts.theOrganizationsUUID} /></Card>
      <Card title={texts.leaveOrganization} lead={texts.youNoLongerReachIts}
        actions={<Button look="danger" onClick={() => setAct('leave')}>{texts.leaveOrganization}</Button>}>{null}</Card>
      {organization.roleId <= roles.owner && (
        <Card title={texts.deleteOrganization} lead={texts.onlyWithoutProjectsAndIf}
          actions={<Button look="danger" onClick={() => setAct('delete')}>{texts.deleteOrganization}</Button>}>{null}</Card>
      )}
      {act === 'leave' && (
        <Confirm title={texts.leaveOrganization} open action={texts.leaveOrganization} onClose={close} onSubmit={async () => {
          await read(api.DELETE('/organizations/{organizationUUID}/membership', { params: { path } }))
          await gone()
        }}>
          {texts.youNoLongerReachThe(<b>{organization.name}</b>)}
        </Confirm>
      )}
      {act === 'delete' && (
        <Confirm title={texts.deleteOrganization} open name={organization.name} action={texts.deleteOrganization} onClose={close}
          onSubmit={async () => {
            await read(api.DELETE('/organizations/{organizationUUID}', { params: { path } }))
            await gone()
          }}>
          {texts.itsMembershipsAndItsInvitations(<b>{organization.name}</b>)}
        </Confirm>
      )}
    </>
  )
}
