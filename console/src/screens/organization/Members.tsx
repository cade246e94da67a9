import { useState } from 'react'
import { Link } from '@tanstack/react-router'
import { useQuery } from '@tanstack/react-query'
import { texts } from '#texts/organization'
import { api, read, type Schemas } from '../../api/client'
import { currentUser } from '../../api/session'
import { Badge, Time } from '../../components/Bits'
import { Confirm, FormDialog } from '../../components/Dialog'
import { Menu, type MenuItem } from '../../components/Menu'
import { Card } from '../../components/Page'
import { RoleField, roleName, roles } from '../../components/Roles'
import { Loaded } from '../../components/States'
import { Pager, Table } from '../../components/Table'
import { queries } from '../../queries'
import { useURLState } from '../../url'

type Organization = Schemas['Organization']
type Member = Schemas['Member']
type Act = { kind: 'role' | 'remove' | 'transfer'; member: Member }

/** Members with their roles, and who may change them. */
export function Members({ organization }: { organization: Organization }) {
  const [page, setPage] = useURLState('page', '1')
  const [act, setAct] = useState<Act>()
  const own = currentUser()?.uuid
  const manages = organization.roleId <= roles.admin
  const query = useQuery({
    queryKey: ['members', organization.uuid, page],
    queryFn: () => read(api.GET('/organizations/{organizationUUID}/members', {
      params: { path: { organizationUUID: organization.uuid }, query: { page: Number(page), sort: 'username', order: 'asc' } },
    })),
  })
  const close = () => setAct(undefined)

  const items = (member: Member): MenuItem[] => [
    { text: texts.changeRole, onSelect: () => setAct({ kind: 'role', member }) },
    ...(organization.roleId <= roles.owner && member.userUuid !== own
      ? [{ text: texts.makeOwnerInsteadOfYou, onSelect: () => setAct({ kind: 'transfer', member }) }] : []),
    ...(member.userUuid !== own
      ? [{ text: texts.removeMember, danger: true, onSelect: () => setAct({ kind: 'remove', member }) }] : []),
  ]

  return (
    <Card title={texts.members} {...(manages && {
      actions: <Link to="." search={{ tab: 'invitations' } as never}>{texts.invitePeople}</Link>,
    })}>
      <Loaded query={query}>
        {({ content, metadata }) => (
          <>
            <Table label={texts.members} rows={content} keyOf={(m) => m.userUuid} columns={[
              { title: texts.userName, cell: (m) => <>{m.username} {m.userUuid === own && <Badge>{texts.you}</Badge>}</> },
              { title: texts.eMailAddress, cell: (m) => m.email, narrow: true },
              { title: texts.role, cell: (m) => roleName(m.roleId) },
              { title: texts.memberSince, cell: (m) => <Time at={m.createdAt} />, narrow: true },
              ...(manages ? [{ title: '', align: 'right' as const, cell: (m: Member) => m.roleId >= organization.roleId && (
                <Menu label={texts.actionsForUsername(m.username)} items={items(m)} />
              ) }] : []),
            ]} />
            <Pager page={metadata.page} pages={metadata.totalPages} total={metadata.total}
              onPage={(n) => setPage(String(n))} />
          </>
        )}
      </Loaded>
      {act?.kind === 'role' && <ChangeRole organization={organization} member={act.member} onClose={close} />}
      {act?.kind === 'transfer' && <Transfer organization={organization} member={act.member} onClose={close} />}
      {act?.kind === 'remove' && <Remove organization={organization} member={act.member} onClose={close} />}
    </Card>
  )
}

interface ActProps {
  organization: Organization
  member: Member
  onClose: () => void
}

async function membersChanged(organization: string) {
  await queries.invalidateQueries({ queryKey: ['members', organization] })
  await queries.invalidateQueries({ queryKey: ['organization', organization] })
}

function ChangeRole({ organization, member, onClose }: ActProps) {
  const [role, setRole] = useState(member.roleId)

  return (
    <FormDialog title={texts.roleOfUsername(member.username)} open onClose={onClose} action={texts.changeRole} onSubmit={async () => {
      await read(api.PUT('/organizations/{organizationUUID}/members/{memberUUID}', {
        params: { path: { organizationUUID: organization.uuid, memberUUID: member.userUuid } },
        body: { role_id: role },
      }))
      await membersChanged(organization.uuid)
    }}>
      <RoleField highest={Math.max(organization.roleId, roles.owner)} value={role} onRole={setRole}
        hint={texts.countsFromTheMembersNext} />
    </FormDialog>
  )
}

function Transfer({ organization, member, onClose }: ActProps) {
  return (
    <Confirm title={texts.transferOrganization} open name={organization.name} action={texts.transferOrganization} onClose={onClose}
      onSubmit={async () => {
        await read(api.PUT('/organizations/{organizationUUID}/owner', {
          params: { path: { organizationUUID: organization.uuid } }, body: { user_uuid: member.userUuid },
        }))
        await membersChanged(organization.uuid)
      }}>
      {texts.becomesAnOwnerOfAnd(<b>{member.username}</b>, organization.name)}
    </Confirm>
  )
}

function Remove({ organization, member, onClose }: ActProps) {
  return (
    <Confirm title={texts.removeMember} open action={texts.removeMember} onClose={onClose} onSubmit={async () => {
      await read(api.DELETE('/organizations/{organizationUUID}/members/{memberUUID}', {
        params: { path: { organizationUUID: organization.uuid, memberUUID: member.userUuid } },
      }))
      await membersChanged(organization.uuid)
    }}>
      {texts.noLongerReachesTheProjects(<b>{member.username}</b>, member.email, organization.name)}
    </Confirm>
  )
}
