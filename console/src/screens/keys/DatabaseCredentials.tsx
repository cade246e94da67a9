import { useState } from 'react'
import { useQuery } from '@tanstack/react-query'
import { texts } from '#texts/keys'
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
      {texts.createCredential}
    </Button>
  )
  const command = (username: string, password: string) =>
    psqlCommand({ address: address.text, username, password, database: project })

  return (
    <>
      <Card title={texts.databaseCredentials} actions={create}
        lead={texts.forMetabasePrismaPsqlAnd}>
        <Loaded query={query}>
          {({ content, metadata }) => content.length === 0 ? (
            <Empty title={texts.noCredentialYet} action={create}>{texts.eachProgramShouldHaveIts}</Empty>
          ) : (
            <>
              <Table label={texts.databaseCredentials} rows={content} keyOf={(c) => c.uuid} columns={[
                { title: texts.name, cell: (c) => c.name },
                { title: texts.access, cell: (c) => (
                  <Badge tone={c.access === 'owner' ? 'warning' : 'neutral'}>{c.access === 'owner' ? texts.owner : texts.readOnly}</Badge>
                ) },
                { title: texts.userName, cell: (c) => <code>{c.username}</code>, narrow: true },
                { title: texts.lastUsed, cell: (c) => <Time at={c.lastUsedAt} />, narrow: true },
                { title: texts.expires, cell: (c) => <Time at={c.expiresAt} />, narrow: true },
                { title: '', align: 'right', cell: (c) => (
                  <Button needs="deleteDatabaseCredential" look="danger" aria-label={texts.revokeCredentialName(c.name)} onClick={() => setRevoked(c)}>
                    {texts.revoke}
                  </Button>
                ) },
              ]} />
              <Pager page={metadata.page} pages={metadata.totalPages} total={metadata.total}
                onPage={(n) => setPage(String(n))} />
            </>
          )}
        </Loaded>
      </Card>
      <Card title={texts.connect} lead={address.note}>
        <h3>{texts.withACredential}</h3>
        <Code label={texts.thePsqlCommand} text={command('USERNAME', 'PASSWORD')} />
        <h3>{texts.withYourOwnAccountThrough}</h3>
        <Code label={texts.theSocleCommand} text={texts.socleLoginUrlSocleDb(location.origin, project)} />
      </Card>
      {creates && <NewCredential project={project} onClose={() => setCreates(false)} onCreated={setCreated} />}
      {created && (
        <ShownOnce title={texts.credentialName(created.credential.name)} onClose={() => setCreated(undefined)} values={[
          { label: texts.userName, value: created.credential.username },
          { label: texts.password, value: created.password },
          { label: 'psql', value: command(created.credential.username, created.password) },
        ]}>
          <p>{address.note}</p>
        </ShownOnce>
      )}
      {revoked && (
        <Confirm title={texts.revokeCredential} open action={texts.revokeCredential} onClose={() => setRevoked(undefined)}
          onSubmit={async () => {
            await read(api.DELETE('/projects/{projectUUID}/database-credentials/{credentialUUID}', {
              params: { path: { projectUUID: project, credentialUUID: revoked.uuid } },
            }))
            await queries.invalidateQueries({ queryKey: ['credentials', project] })
          }}>
          {texts.theSessionsOfEndWithin(<b>{revoked.name}</b>)}
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
    return { text: guess, note: texts.askTheAdministratorForThe }
  }
  if (listen === '') {
    return { text: guess, note: texts.thisServerDoesNotListen }
  }

  return { text: clientAddress(listen, location.hostname), note: texts.connectionsNeedTLSTheDatabase }
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
    <FormDialog title={texts.newDatabaseCredential} open onClose={onClose} action={texts.createCredential} onSubmit={create}>
      <TextField label={texts.name} required maxLength={100} autoFocus value={name} hint={texts.theProgramThatUsesIt}
        onChange={(e) => setName(e.target.value)} />
      <SelectField label={texts.access} value={access} hint={texts.bothPassRowLevelSecurity}
        onChange={(e) => setAccess(e.target.value === 'owner' ? 'owner' : 'read_only')}>
        <option value="read_only">{texts.readOnlyReadsAllTables}</option>
        <option value="owner">{texts.ownerEverythingThatSQLMay}</option>
      </SelectField>
      <TextField label={texts.expires} type="datetime-local" value={expires} hint={texts.emptyNever}
        onChange={(e) => setExpires(e.target.value)} />
    </FormDialog>
  )
}
