import { useState } from 'react'
import { useQuery } from '@tanstack/react-query'
import { api, read, type Schemas } from '../../api/client'
import { Badge, Time } from '../../components/Bits'
import { Button } from '../../components/Button'
import { Confirm } from '../../components/Dialog'
import { Card } from '../../components/Page'
import { Empty, Loaded } from '../../components/States'
import { Pager, Table } from '../../components/Table'
import { toast } from '../../components/Toast'
import { queries } from '../../queries'

type Session = Schemas['AccountSession']
type Factor = Schemas['AccountFactor']

interface Props {
  project: string
  user: string
}

const pathOf = ({ project, user }: Props) => ({ projectUUID: project, endUserUUID: user })

/** Where the user is signed in. */
export function Sessions(props: Props) {
  const [page, setPage] = useState(1)
  const [ended, setEnded] = useState<Session>()
  const query = useQuery({
    queryKey: ['end-users', props.project, 'sessions', props.user, page],
    queryFn: () => read(api.GET('/projects/{projectUUID}/end-users/{endUserUUID}/sessions', {
      params: { path: pathOf(props), query: { page, order: 'desc' } },
    })),
  })

  async function end(session: Session) {
    await read(api.DELETE('/projects/{projectUUID}/end-users/{endUserUUID}/sessions/{endUserSessionUUID}', {
      params: { path: { ...pathOf(props), endUserSessionUUID: session.uuid } },
    }))
    toast('The session is ended.')
    await queries.invalidateQueries({ queryKey: ['end-users', props.project, 'sessions'] })
  }

  return (
    <Card title="Sessions" lead="Where this user is signed in.">
      <Loaded query={query} rows={1}>
        {({ content, metadata }) => content.length === 0 ? <Empty title="Not signed in">The user has no session.</Empty> : (
          <>
            <Table label="Sessions" rows={content} keyOf={(s) => s.uuid} columns={[
              { title: 'Device', cell: (s) => s.userAgent ?? 'unknown' },
              { title: 'Address', cell: (s) => s.address, narrow: true },
              { title: 'Signed in by', cell: (s) => (
                <>{s.methods.join(', ')} {s.level !== 'aal1' && <Badge tone="success">second factor</Badge>}</>
              ) },
              { title: 'Since', cell: (s) => <Time at={s.createdAt} />, narrow: true },
              { title: 'Renewed', cell: (s) => <Time at={s.refreshedAt} />, narrow: true },
              { title: '', align: 'right', cell: (s) => (
                <Button needs="deleteEndUserSession" aria-label={`End session of ${s.address ?? 'an unknown address'}`}
                  onClick={() => setEnded(s)}>End</Button>
              ) },
            ]} />
            <Pager page={metadata.page} pages={metadata.totalPages} total={metadata.total} onPage={setPage} />
          </>
        )}
      </Loaded>
      {ended && (
        <Confirm title="End session" open action="End session" onClose={() => setEnded(undefined)} onSubmit={() => end(ended)}>
          <p>The user has to sign in again on this device. The rows API accepts its access token until that expires.</p>
        </Confirm>
      )}
    </Card>
  )
}

const factorTypes: Record<Factor['type'], string> = {
  totp: 'authenticator app', phone: 'text message', webauthn: 'security key',
}

/** What the user needs besides the password. */
export function Factors(props: Props) {
  const [removed, setRemoved] = useState<Factor>()
  const query = useQuery({
    queryKey: ['end-users', props.project, 'factors', props.user],
    queryFn: () => read(api.GET('/projects/{projectUUID}/end-users/{endUserUUID}/factors', { params: { path: pathOf(props) } })),
  })

  async function remove(factor: Factor) {
    await read(api.DELETE('/projects/{projectUUID}/end-users/{endUserUUID}/factors/{factorUUID}', {
      params: { path: { ...pathOf(props), factorUUID: factor.uuid } },
    }))
    toast('The second factor is removed.')
    await queries.invalidateQueries({ queryKey: ['end-users', props.project] })
  }

  return (
    <Card title="Second factors" lead="What this user needs besides the password.">
      <Loaded query={query} rows={1}>
        {({ content }) => content.length === 0 ? <Empty title="No second factor">The user adds one in your application.</Empty> : (
          <Table label="Second factors" rows={content} keyOf={(f) => f.uuid} columns={[
            { title: 'Kind', cell: (f) => factorTypes[f.type] },
            { title: 'Name', cell: (f) => f.name || (f.phone && `+${f.phone}`) },
            { title: 'State', cell: (f) => f.status === 'verified' ? <Badge tone="success">in use</Badge> : <Badge>not verified</Badge> },
            { title: 'Added', cell: (f) => <Time at={f.createdAt} />, narrow: true },
            { title: '', align: 'right', cell: (f) => (
              <Button needs="deleteEndUserFactor" look="danger" aria-label={`Remove ${factorTypes[f.type]} ${f.name}`}
                onClick={() => setRemoved(f)}>Remove</Button>
            ) },
          ]} />
        )}
      </Loaded>
      {removed && (
        <Confirm title="Remove second factor" open action="Remove factor" onClose={() => setRemoved(undefined)}
          onSubmit={() => remove(removed)}>
          <p>
            Make sure that the person who asks is the user: without the factor, whoever has the password or the mailbox gets
            in. With the last one, the recovery codes are void.
          </p>
        </Confirm>
      )}
    </Card>
  )
}

/** The accounts by which the user signs in. */
export function Identities(props: Props) {
  const query = useQuery({
    queryKey: ['end-users', props.project, 'identities', props.user],
    queryFn: () => read(api.GET('/projects/{projectUUID}/end-users/{endUserUUID}/identities', {
      params: { path: pathOf(props), query: { limit: 100 } },
    })),
  })

  return (
    <Card title="Identities" lead="Accounts by which this user signs in.">
      <Loaded query={query} rows={1}>
        {({ content }) => content.length === 0
          ? <Empty title="No identity">The user has no address, number or provider.</Empty>
          : (
            <Table label="Identities" rows={content} keyOf={(i) => i.uuid} columns={[
              { title: 'Provider', cell: (i) => i.provider },
              { title: 'Id with the provider', cell: (i) => <code>{i.providerId}</code>, narrow: true },
              { title: 'Address', cell: (i) => i.email },
              { title: 'Last sign-in', cell: (i) => <Time at={i.lastSignInAt} /> },
            ]} />
          )}
      </Loaded>
    </Card>
  )
}
