import { useState } from 'react'
import { useNavigate, useParams } from '@tanstack/react-router'
import { useQuery } from '@tanstack/react-query'
import { api, inProject, read, type Schemas } from '../../api/client'
import { Copyable, Time } from '../../components/Bits'
import { Button, ButtonLink } from '../../components/Button'
import { Details } from '../../components/Details'
import { Confirm } from '../../components/Dialog'
import { Card, Page, Row } from '../../components/Page'
import { Empty, Loaded } from '../../components/States'
import { Table } from '../../components/Table'
import { toast } from '../../components/Toast'
import { queries } from '../../queries'
import { Access } from './Access'
import { AccountBadges } from './EndUsers'
import { EditProfile } from './EditProfile'
import { Metadata } from './Metadata'
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
    <Card title="Profile" actions={<Button onClick={() => setEdits(true)}>Edit profile</Button>}>
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

/** The ways by which the user signs in. The platform API has none, so they come from the database. */
function Identities({ project, user }: { project: string; user: string }) {
  const query = useQuery({
    queryKey: ['end-users', project, 'identities', user],
    queryFn: () => read(api.POST('/sql', {
      params: { header: inProject(project) },
      body: {
        query: 'select provider, provider_id, email, last_sign_in_at::text, created_at::text\n'
          + 'from auth.identities where user_id = $1::uuid order by created_at',
        parameters: [user],
        read_only: true,
      },
    })),
  })

  return (
    <Card title="Identities" lead="Accounts by which this user signs in.">
      <Loaded query={query} rows={1}>
        {({ content }) => {
          const rows = (content.results[0]?.rows ?? []) as (string | null)[][]
          if (rows.length === 0) return <Empty title="No identity">The user has no address, number or provider.</Empty>

          return (
            <Table label="Identities" rows={rows} keyOf={(r) => `${r[0]} ${r[1]}`} columns={[
              { title: 'Provider', cell: (r) => r[0] },
              { title: 'Id with the provider', cell: (r) => <code>{r[1]}</code>, narrow: true },
              { title: 'Address', cell: (r) => r[2] },
              { title: 'Last sign-in', cell: (r) => <Time at={r[3]} /> },
            ]} />
          )
        }}
      </Loaded>
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
        <Button look="danger" onClick={() => setAsks(true)}>Delete user</Button>
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
