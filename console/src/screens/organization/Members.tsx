import { useState } from 'react'
import { Link } from '@tanstack/react-router'
import { useQuery } from '@tanstack/react-query'
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
    { text: 'Change role', onSelect: () => setAct({ kind: 'role', member }) },
    ...(organization.roleId <= roles.owner && member.userUuid !== own
      ? [{ text: 'Make owner instead of you', onSelect: () => setAct({ kind: 'transfer', member }) }] : []),
    ...(member.userUuid !== own
      ? [{ text: 'Remove member', danger: true, onSelect: () => setAct({ kind: 'remove', member }) }] : []),
  ]

  return (
    <Card title="Members" {...(manages && {
      actions: <Link to="." search={{ tab: 'invitations' } as never}>Invite people</Link>,
    })}>
      <Loaded query={query}>
        {({ content, metadata }) => (
          <>
            <Table label="Members" rows={content} keyOf={(m) => m.userUuid} columns={[
              { title: 'User name', cell: (m) => <>{m.username} {m.userUuid === own && <Badge>you</Badge>}</> },
              { title: 'E-mail address', cell: (m) => m.email, narrow: true },
              { title: 'Role', cell: (m) => roleName(m.roleId) },
              { title: 'Member since', cell: (m) => <Time at={m.createdAt} />, narrow: true },
              ...(manages ? [{ title: '', align: 'right' as const, cell: (m: Member) => m.roleId >= organization.roleId && (
                <Menu label={`Actions for ${m.username}`} items={items(m)} />
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
    <FormDialog title={`Role of ${member.username}`} open onClose={onClose} action="Change role" onSubmit={async () => {
      await read(api.PUT('/organizations/{organizationUUID}/members/{memberUUID}', {
        params: { path: { organizationUUID: organization.uuid, memberUUID: member.userUuid } },
        body: { role_id: role },
      }))
      await membersChanged(organization.uuid)
    }}>
      <RoleField highest={Math.max(organization.roleId, roles.owner)} value={role} onRole={setRole}
        hint="Counts from the member's next request." />
    </FormDialog>
  )
}

function Transfer({ organization, member, onClose }: ActProps) {
  return (
    <Confirm title="Transfer organization" open name={organization.name} action="Transfer organization" onClose={onClose}
      onSubmit={async () => {
        await read(api.PUT('/organizations/{organizationUUID}/owner', {
          params: { path: { organizationUUID: organization.uuid } }, body: { user_uuid: member.userUuid },
        }))
        await membersChanged(organization.uuid)
      }}>
      <b>{member.username}</b> becomes an owner of {organization.name} and you become an admin. You can then no longer
      transfer or delete it, or delete its projects.
    </Confirm>
  )
}

function Remove({ organization, member, onClose }: ActProps) {
  return (
    <Confirm title="Remove member" open action="Remove member" onClose={onClose} onSubmit={async () => {
      await read(api.DELETE('/organizations/{organizationUUID}/members/{memberUUID}', {
        params: { path: { organizationUUID: organization.uuid, memberUUID: member.userUuid } },
      }))
      await membersChanged(organization.uuid)
    }}>
      <b>{member.username}</b> ({member.email}) no longer reaches the projects of {organization.name}. Invitations that
      they sent and nobody accepted are deleted. What they created stays.
    </Confirm>
  )
}
