import { useState } from 'react'
import { useQuery } from '@tanstack/react-query'
import { texts } from '#texts/organization'
import { api, read, type Schemas } from '../../api/client'
import { Badge, Time } from '../../components/Bits'
import { Button } from '../../components/Button'
import { Confirm, FormDialog } from '../../components/Dialog'
import { TextField } from '../../components/Field'
import { Card } from '../../components/Page'
import { RoleField, roleName, roles } from '../../components/Roles'
import { Empty, Loaded } from '../../components/States'
import { Pager, Table } from '../../components/Table'
import { toast } from '../../components/Toast'
import { queries } from '../../queries'
import { useURLState } from '../../url'

type Organization = Schemas['Organization']
type Invitation = Schemas['Invited']

const changed = (organization: string) => queries.invalidateQueries({ queryKey: ['invitations', organization] })

/** Invitations that nobody has accepted yet. */
export function Invitations({ organization }: { organization: Organization }) {
  const [page, setPage] = useURLState('page', '1')
  const [invites, setInvites] = useState(false)
  const [revoked, setRevoked] = useState<Invitation>()
  const [sending, setSending] = useState('')
  const query = useQuery({
    queryKey: ['invitations', organization.uuid, page],
    queryFn: () => read(api.GET('/organizations/{organizationUUID}/invitations', {
      params: { path: { organizationUUID: organization.uuid }, query: { page: Number(page), sort: 'createdAt', order: 'desc' } },
    })),
  })
  const path = (i: Invitation) => ({ organizationUUID: organization.uuid, invitationUUID: i.uuid })
  const invite = <Button look="primary" onClick={() => setInvites(true)}>{texts.invitePerson}</Button>

  async function resend(i: Invitation) {
    setSending(i.uuid)
    try {
      await read(api.POST('/organizations/{organizationUUID}/invitations/{invitationUUID}/resend', {
        params: { path: path(i) },
      }))
      await changed(organization.uuid)
      toast(texts.aNewLinkIsOn(i.email))
    } catch (error) {
      toast(error instanceof Error ? error.message : String(error), 'danger')
    } finally {
      setSending('')
    }
  }

  return (
    <Card title={texts.invitations} lead={texts.eachMailsALinkThat} actions={invite}>
      <Loaded query={query}>
        {({ content, metadata }) => content.length === 0 ? (
          <Empty title={texts.noOpenInvitation} action={invite}>{texts.inviteAColleagueByE}</Empty>
        ) : (
          <>
            <Table label={texts.invitations} rows={content} keyOf={(i) => i.uuid} columns={[
              { title: texts.eMailAddress, cell: (i) => i.email },
              { title: texts.role, cell: (i) => roleName(i.roleId), narrow: true },
              { title: texts.sent, cell: (i) => <Time at={i.sentAt} />, narrow: true },
              { title: texts.expires, cell: (i) => Date.parse(i.expiresAt) < Date.now()
                ? <Badge tone="warning">{texts.expired}</Badge> : <Time at={i.expiresAt} /> },
              { title: '', align: 'right', cell: (i) => (
                <>
                  <Button busy={sending === i.uuid} aria-label={texts.resendInvitationToEmail(i.email)} onClick={() => void resend(i)}>
                    {texts.resend}
                  </Button>{' '}
                  <Button look="danger" aria-label={texts.revokeInvitationToEmail(i.email)} onClick={() => setRevoked(i)}>
                    {texts.revoke}
                  </Button>
                </>
              ) },
            ]} />
            <Pager page={metadata.page} pages={metadata.totalPages} total={metadata.total}
              onPage={(n) => setPage(String(n))} />
          </>
        )}
      </Loaded>
      {invites && <Invite organization={organization} onClose={() => setInvites(false)} />}
      {revoked && (
        <Confirm title={texts.revokeInvitation} open action={texts.revokeInvitation} onClose={() => setRevoked(undefined)}
          onSubmit={async () => {
            await read(api.DELETE('/organizations/{organizationUUID}/invitations/{invitationUUID}', {
              params: { path: path(revoked) },
            }))
            await changed(organization.uuid)
          }}>
          {texts.theLinkThatHasNo(<b>{revoked.email}</b>)}
        </Confirm>
      )}
    </Card>
  )
}

function Invite({ organization, onClose }: { organization: Organization; onClose: () => void }) {
  const [email, setEmail] = useState('')
  const [role, setRole] = useState<number>(Math.max(organization.roleId, roles.developer))
  const [idempotency] = useState(() => crypto.randomUUID())

  return (
    <FormDialog title={texts.invitePerson} open onClose={onClose} action={texts.sendInvitation} onSubmit={async () => {
      await read(api.POST('/organizations/{organizationUUID}/invitations', {
        params: { path: { organizationUUID: organization.uuid } },
        body: { email, role_id: role },
        headers: { 'Idempotency-Key': idempotency },
      }))
      await changed(organization.uuid)
      toast(texts.theInvitationIsOnIts(email))
    }}>
      <TextField label={texts.eMailAddress} type="email" required autoFocus value={email} onChange={(e) => setEmail(e.target.value)} />
      <RoleField highest={Math.max(organization.roleId, roles.owner)} value={role} onRole={setRole} />
    </FormDialog>
  )
}
