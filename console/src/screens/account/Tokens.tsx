import { useState } from 'react'
import { useQuery } from '@tanstack/react-query'
import { api, read, type Schemas } from '../../api/client'
import { Code, Time } from '../../components/Bits'
import { Button } from '../../components/Button'
import { Confirm, FormDialog } from '../../components/Dialog'
import { CheckField, SelectField, TextField } from '../../components/Field'
import { Card } from '../../components/Page'
import { RoleField, roleName, roles } from '../../components/Roles'
import { ShownOnce } from '../../components/ShownOnce'
import { Empty, Loaded } from '../../components/States'
import { Pager, Table } from '../../components/Table'
import { queries } from '../../queries'
import { useURLState } from '../../url'
import css from './Tokens.module.css'

type Token = Schemas['Token']

interface Created {
  name: string
  token: string
}

/** Personal access tokens, for scripts and the command line. */
export function Tokens({ role }: { role: number }) {
  const [page, setPage] = useURLState('page', '1')
  const [creates, setCreates] = useState(false)
  const [created, setCreated] = useState<Created>()
  const [revoked, setRevoked] = useState<Token>()
  const query = useQuery({
    queryKey: ['tokens', page],
    queryFn: () => read(api.GET('/tokens', {
      params: { query: { page: Number(page), sort: 'createdAt', order: 'desc' } },
    })),
  })
  const create = <Button look="primary" onClick={() => setCreates(true)}>Create token</Button>

  return (
    <Card title="Access tokens" actions={create}
      lead="A script acts as you with a token, up to the role of the token. It never reaches your password, address or sessions.">
      <Loaded query={query}>
        {({ content, metadata }) => content.length === 0 ? (
          <Empty title="No token yet" action={create}>Create one for a script, a CI job or the command line.</Empty>
        ) : (
          <>
            <Table label="Access tokens" rows={content} keyOf={(t) => t.uuid} columns={[
              { title: 'Name', cell: (t) => t.name },
              { title: 'Role', cell: (t) => roleName(t.roleId) },
              { title: 'Begins with', cell: (t) => <code>{t.hint}…</code>, narrow: true },
              { title: 'Projects', cell: (t) => t.projectUuids === null ? 'all' : t.projectUuids.length, narrow: true },
              { title: 'Last used', cell: (t) => <Time at={t.lastUsedAt} />, narrow: true },
              { title: 'Expires', cell: (t) => <Time at={t.expiresAt} /> },
              { title: '', align: 'right', cell: (t) => (
                <Button look="danger" aria-label={`Revoke token ${t.name}`} onClick={() => setRevoked(t)}>Revoke</Button>
              ) },
            ]} />
            <Pager page={metadata.page} pages={metadata.totalPages} total={metadata.total}
              onPage={(n) => setPage(String(n))} />
          </>
        )}
      </Loaded>
      {creates && <NewToken highest={role} onClose={() => setCreates(false)} onCreated={setCreated} />}
      {created && (
        <ShownOnce title={`Token ${created.name}`} onClose={() => setCreated(undefined)}
          values={[{ label: 'Token', value: created.token }]}>
          <Code label="a first request" text={`curl ${location.origin}/projects -H 'Authorization: Bearer ${created.token}'`} />
        </ShownOnce>
      )}
      {revoked && (
        <Confirm title="Revoke token" open action="Revoke token" onClose={() => setRevoked(undefined)} onSubmit={async () => {
          await read(api.DELETE('/tokens/{tokenUUID}', { params: { path: { tokenUUID: revoked.uuid } } }))
          await queries.invalidateQueries({ queryKey: ['tokens'] })
        }}>
          Scripts with <b>{revoked.name}</b> are refused. A revoked token does not come back.
        </Confirm>
      )}
    </Card>
  )
}

const lifetimes = [7, 30, 90, 365] // days

function NewToken({ highest, onClose, onCreated }: {
  highest: number
  onClose: () => void
  onCreated: (created: Created) => void
}) {
  const [name, setName] = useState('')
  const [role, setRole] = useState<number>(Math.max(highest, roles.developer))
  const [days, setDays] = useState(30)
  const [projects, setProjects] = useState<string[]>([])
  const [idempotency] = useState(() => crypto.randomUUID())

  async function create() {
    const { metadata } = await read(api.POST('/tokens', {
      body: {
        name, role_id: role,
        expires_at: new Date(Date.now() + days * 86_400_000 - 60_000).toISOString(), // clocks differ; a year is the limit
        ...(projects.length > 0 && { project_uuids: projects }),
      },
      headers: { 'Idempotency-Key': idempotency },
    }))
    onCreated({ name, token: metadata.token })
    await queries.invalidateQueries({ queryKey: ['tokens'] })
  }

  return (
    <FormDialog title="New access token" open onClose={onClose} action="Create token" onSubmit={create}>
      <TextField label="Name" required maxLength={100} autoFocus value={name} hint="What uses it, such as deploy script."
        onChange={(e) => setName(e.target.value)} />
      <RoleField highest={highest} value={role} onRole={setRole} />
      <SelectField label="Valid for" value={days} onChange={(e) => setDays(Number(e.target.value))}>
        {lifetimes.map((n) => <option key={n} value={n}>{n === 365 ? 'a year' : `${n} days`}</option>)}
      </SelectField>
      <ProjectChoice chosen={projects} onChoose={setProjects} />
    </FormDialog>
  )
}

function ProjectChoice({ chosen, onChoose }: { chosen: string[]; onChoose: (projects: string[]) => void }) {
  const query = useQuery({
    queryKey: ['projects', 'choice'],
    queryFn: () => read(api.GET('/projects', { params: { query: { limit: 100, sort: 'name' } } })),
  })

  return (
    <fieldset className={css.projects}>
      <legend>Projects</legend>
      <p className={css.hint}>None chosen: all that you can reach.</p>
      <Loaded query={query} rows={2}>
        {({ content }) => content.map((p) => (
          <CheckField key={p.uuid} label={p.name} checked={chosen.includes(p.uuid)} onChange={(e) =>
            onChoose(e.target.checked ? [...chosen, p.uuid] : chosen.filter((uuid) => uuid !== p.uuid))} />
        ))}
      </Loaded>
    </fieldset>
  )
}
