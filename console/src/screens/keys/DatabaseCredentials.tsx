import { useState } from 'react'
import { useQuery } from '@tanstack/react-query'
import { api, read, type Schemas } from '../../api/client'
import { currentUser } from '../../api/session'
import { Badge, Code, Time } from '../../components/Bits'
import { Button } from '../../components/Button'
import { Confirm, FormDialog } from '../../components/Dialog'
import { SelectField, TextField } from '../../components/Field'
import { Card } from '../../components/Page'
import { roles } from '../../components/Roles'
import { ShownOnce } from '../../components/ShownOnce'
import { Empty, Loaded } from '../../components/States'
import { Pager, Table } from '../../components/Table'
import { queries } from '../../queries'
import { useURLState } from '../../url'
import { clientAddress, psqlCommand } from './psql'

type Credential = Schemas['Credential']
type Access = Credential['access']

interface Created {
  credential: Credential
  password: string
}

const defaultPort = 5432

/** User names and passwords for PostgreSQL clients, and how to connect. */
export function DatabaseCredentials({ project }: { project: string }) {
  const [page, setPage] = useURLState('page', '1')
  const [creates, setCreates] = useState(false)
  const [created, setCreated] = useState<Created>()
  const [revoked, setRevoked] = useState<Credential>()
  const address = useAddress()
  const query = useQuery({
    queryKey: ['credentials', project, page],
    queryFn: () => read(api.GET('/projects/{projectUUID}/database-credentials', {
      params: { path: { projectUUID: project }, query: { page: Number(page), sort: 'createdAt', order: 'desc' } },
    })),
  })
  const create = (
    <Button needs="createDatabaseCredential" look="primary" onClick={() => setCreates(true)}>
      Create credential
    </Button>
  )
  const command = (username: string, password: string) =>
    psqlCommand({ address: address.text, username, password, database: project })

  return (
    <>
      <Card title="Database credentials" actions={create}
        lead="For Metabase, Prisma, psql and other programs that speak PostgreSQL's protocol.">
        <Loaded query={query}>
          {({ content, metadata }) => content.length === 0 ? (
            <Empty title="No credential yet" action={create}>Each program should have its own, so that you can revoke it.</Empty>
          ) : (
            <>
              <Table label="Database credentials" rows={content} keyOf={(c) => c.uuid} columns={[
                { title: 'Name', cell: (c) => c.name },
                { title: 'Access', cell: (c) => (
                  <Badge tone={c.access === 'owner' ? 'warning' : 'neutral'}>{c.access === 'owner' ? 'owner' : 'read only'}</Badge>
                ) },
                { title: 'User name', cell: (c) => <code>{c.username}</code>, narrow: true },
                { title: 'Last used', cell: (c) => <Time at={c.lastUsedAt} />, narrow: true },
                { title: 'Expires', cell: (c) => <Time at={c.expiresAt} />, narrow: true },
                { title: '', align: 'right', cell: (c) => (
                  <Button needs="deleteDatabaseCredential" look="danger" aria-label={`Revoke credential ${c.name}`} onClick={() => setRevoked(c)}>
                    Revoke
                  </Button>
                ) },
              ]} />
              <Pager page={metadata.page} pages={metadata.totalPages} total={metadata.total}
                onPage={(n) => setPage(String(n))} />
            </>
          )}
        </Loaded>
      </Card>
      <Card title="Connect" lead={address.note}>
        <h3>With a credential</h3>
        <Code label="the psql command" text={command('USERNAME', 'PASSWORD')} />
        <h3>With your own account, through the API</h3>
        <Code label="the socle command" text={`socle login --url ${location.origin}\nsocle db psql --project ${project}`} />
      </Card>
      {creates && <NewCredential project={project} onClose={() => setCreates(false)} onCreated={setCreated} />}
      {created && (
        <ShownOnce title={`Credential ${created.credential.name}`} onClose={() => setCreated(undefined)} values={[
          { label: 'User name', value: created.credential.username },
          { label: 'Password', value: created.password },
          { label: 'psql', value: command(created.credential.username, created.password) },
        ]}>
          <p>{address.note}</p>
        </ShownOnce>
      )}
      {revoked && (
        <Confirm title="Revoke credential" open action="Revoke credential" onClose={() => setRevoked(undefined)}
          onSubmit={async () => {
            await read(api.DELETE('/projects/{projectUUID}/database-credentials/{credentialUUID}', {
              params: { path: { projectUUID: project, credentialUUID: revoked.uuid } },
            }))
            await queries.invalidateQueries({ queryKey: ['credentials', project] })
          }}>
          The sessions of <b>{revoked.name}</b> end within seconds, and it is refused from then on.
        </Confirm>
      )}
    </>
  )
}

/** Returns where PostgreSQL clients connect. Only administrators can read where the server listens. */
function useAddress(): { text: string; note: string } {
  const query = useQuery({
    queryKey: ['environment'],
    enabled: currentUser()?.roleId === roles.administrator,
    queryFn: () => read(api.GET('/admin/environment')),
  })
  const listen = query.data?.content.find((e) => e.name === 'SOCLE_POSTGRES_ADDR')?.value
  const guess = `${location.hostname}:${defaultPort}`

  if (listen === undefined) {
    return { text: guess, note: 'Ask the administrator for the host and port: SOCLE_POSTGRES_ADDR of the server.' }
  }
  if (listen === '') {
    return { text: guess, note: 'This server does not listen for PostgreSQL clients yet. Start it with SOCLE_POSTGRES_ADDR, or connect through the API.' }
  }

  return { text: clientAddress(listen, location.hostname), note: 'Connections need TLS. The database is the name or the UUID of the project.' }
}

function NewCredential({ project, onClose, onCreated }: {
  project: string
  onClose: () => void
  onCreated: (created: Created) => void
}) {
  const [name, setName] = useState('')
  const [access, setAccess] = useState<Access>('read_only')
  const [expires, setExpires] = useState('')
  const [idempotency] = useState(() => crypto.randomUUID())

  async function create() {
    const { content, metadata } = await read(api.POST('/projects/{projectUUID}/database-credentials', {
      params: { path: { projectUUID: project } },
      body: { name, access, ...(expires !== '' && { expires_at: new Date(expires).toISOString() }) },
      headers: { 'Idempotency-Key': idempotency },
    }))
    onCreated({ credential: content, password: metadata.password })
    await queries.invalidateQueries({ queryKey: ['credentials', project] })
  }

  return (
    <FormDialog title="New database credential" open onClose={onClose} action="Create credential" onSubmit={create}>
      <TextField label="Name" required maxLength={100} autoFocus value={name} hint="The program that uses it, such as metabase."
        onChange={(e) => setName(e.target.value)} />
      <SelectField label="Access" value={access} hint="Both pass row level security."
        onChange={(e) => setAccess(e.target.value === 'owner' ? 'owner' : 'read_only')}>
        <option value="read_only">read only: reads all tables</option>
        <option value="owner">owner: everything that SQL may do</option>
      </SelectField>
      <TextField label="Expires" type="datetime-local" value={expires} hint="Empty: never."
        onChange={(e) => setExpires(e.target.value)} />
    </FormDialog>
  )
}
