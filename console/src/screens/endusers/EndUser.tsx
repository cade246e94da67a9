import { useState } from 'react'
import { useNavigate, useParams } from '@tanstack/react-router'
import { useQuery } from '@tanstack/react-query'
import { api, read, type Schemas } from '../../api/client'
import { Copyable, Time } from '../../components/Bits'
import { Button, ButtonLink } from '../../components/Button'
import { Details } from '../../components/Details'
import { Confirm } from '../../components/Dialog'
import { Card, Page, Row } from '../../components/Page'
import { Loaded } from '../../components/States'
import { toast } from '../../components/Toast'
import { queries } from '../../queries'
import { Access } from './Access'
import { AccountBadges } from './EndUsers'
import { EditProfile } from './EditProfile'
import { Metadata } from './Metadata'
import { Factors, Identities, Sessions } from './SignIns'
import { titleOf } from './account'

type Account = Schemas['Account']

/** One user of the project's application. */
export function EndUser() {
  const { project, user } = useParams({ strict: false }) as { project: string; user: string }
  const query = useQuery({
    queryKey: ['end-users', project, 'one', user],
    queryFn: () => read(api.GET('/projects/{projectUUID}/end-users/{endUserUUID}', {
      params: { path: { projectUUID: project, endUserUUID: user } },
    })),
  })

  return (
    <Page title={query.data === undefined ? 'User' : titleOf(query.data.content)}
      actions={<ButtonLink to={`/projects/${project}/users` as string}>All users</ButtonLink>}>
      <Loaded query={query}>
        {({ content }) => (
          <>
            <Profile project={project} account={content} />
            <Access project={project} account={content} />
            <Metadata project={project} account={content} />
            <Sessions project={project} user={user} />
            <Factors project={project} user={user} />
            <Identities project={project} user={user} />
            <Deletion project={project} account={content} />
          </>
        )}
      </Loaded>
    </Page>
  )
}

function Profile({ project, account: a }: { project: string; account: Account }) {
  const [edits, setEdits] = useState(false)

  return (
    <Card title="Profile" actions={<Button needs="updateEndUser" onClick={() => setEdits(true)}>Edit profile</Button>}>
      <Details entries={[
        ['State', <AccountBadges account={a} />],
        ['UUID', <Copyable value={a.uuid} label="UUID" />],
        ['Address', a.email === '' ? 'none' : a.email],
        ['Address confirmed', a.email === '' ? undefined : <Time at={a.emailConfirmedAt} />],
        ['Phone number', a.phone === '' ? 'none' : `+${a.phone}`],
        ['Number confirmed', a.phone === '' ? undefined : <Time at={a.phoneConfirmedAt} />],
        ['Role in the rows API', <code>{a.role}</code>],
        ['Last sign-in', <Time at={a.lastSignInAt} />],
        ['Invited', a.invitedAt === null ? undefined : <Time at={a.invitedAt} />],
        ['Created', <Time at={a.createdAt} />],
        ['Changed', <Time at={a.updatedAt} />],
      ]} />
      {edits && <EditProfile project={project} account={a} onClose={() => setEdits(false)} />}
    </Card>
  )
}

function Deletion({ project, account }: { project: string; account: Account }) {
  const navigate = useNavigate()
  const [asks, setAsks] = useState(false)
  const name = titleOf(account)

  async function remove() {
    await read(api.DELETE('/projects/{projectUUID}/end-users/{endUserUUID}', {
      params: { path: { projectUUID: project, endUserUUID: account.uuid } },
    }))
    toast(`User ${name} is deleted.`)
    await navigate({ to: `/projects/${project}/users` })
    await queries.invalidateQueries({ queryKey: ['end-users', project] })
  }

  return (
    <Card title="Delete user" lead="Rows that refer to the user go with it, where their foreign key says so.">
      <Row>
        <Button needs="deleteEndUser" look="danger" onClick={() => setAsks(true)}>Delete user</Button>
      </Row>
      {asks && (
        <Confirm title="Delete this user" open onClose={() => setAsks(false)} action="Delete user" name={name}
          onSubmit={remove}>
          <p>
            The account of {name}, its sessions and its identities are lost. So are all rows whose foreign key on{' '}
            <code>auth.users</code> says <code>on delete cascade</code>. This cannot be undone.
          </p>
        </Confirm>
      )}
    </Card>
  )
}
