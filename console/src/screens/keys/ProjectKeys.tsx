import { useState } from 'react'
import { useQuery } from '@tanstack/react-query'
import { api, read, type Schemas } from '../../api/client'
import { Badge, Time } from '../../components/Bits'
import { Button } from '../../components/Button'
import { Confirm, FormDialog } from '../../components/Dialog'
import { SelectField, TextField } from '../../components/Field'
import { Card } from '../../components/Page'
import { ShownOnce } from '../../components/ShownOnce'
import { Empty, Loaded } from '../../components/States'
import { Pager, Table } from '../../components/Table'
import { queries } from '../../queries'
import { useURLState } from '../../url'

type Key = Schemas['ProjectKey']
type Kind = Key['kind']

interface Created {
  name: string
  kind: Kind
  key: string
}

/** Publishable and secret keys. */
export function ProjectKeys({ project }: { project: string }) {
  const [page, setPage] = useURLState('page', '1')
  const [creates, setCreates] = useState(false)
  const [created, setCreated] = useState<Created>()
  const [revoked, setRevoked] = useState<Key>()
  const query = useQuery({
    queryKey: ['keys', project, page],
    queryFn: () => read(api.GET('/projects/{projectUUID}/keys', {
      params: { path: { projectUUID: project }, query: { page: Number(page), sort: 'createdAt', order: 'desc' } },
    })),
  })
  const create = <Button needs="createKey" look="primary" onClick={() => setCreates(true)}>Create key</Button>

  return (
    <Card title="API keys" actions={create}
      lead="A publishable key may stand in a browser: it acts as anon. A secret key passes all policies and stays on servers.">
      <Loaded query={query}>
        {({ content, metadata }) => content.length === 0 ? (
          <Empty title="No key yet" action={create}>An application needs a key to read and write rows and files.</Empty>
        ) : (
          <>
            <Table label="API keys" rows={content} keyOf={(k) => k.uuid} columns={[
              { title: 'Name', cell: (k) => k.name },
              { title: 'Kind', cell: (k) => <Badge tone={k.kind === 'secret' ? 'warning' : 'neutral'}>{k.kind}</Badge> },
              { title: 'Begins with', cell: (k) => <code>{k.hint}…</code>, narrow: true },
              { title: 'Created', cell: (k) => <Time at={k.createdAt} />, narrow: true },
              { title: '', align: 'right', cell: (k) => (
                <Button needs="deleteKey" look="danger" aria-label={`Revoke key ${k.name}`} onClick={() => setRevoked(k)}>
                  Revoke
                </Button>
              ) },
            ]} />
            <Pager page={metadata.page} pages={metadata.totalPages} total={metadata.total}
              onPage={(n) => setPage(String(n))} />
          </>
        )}
      </Loaded>
      {creates && <NewKey project={project} onClose={() => setCreates(false)} onCreated={setCreated} />}
      {created && (
        <ShownOnce title={`Key ${created.name}`} onClose={() => setCreated(undefined)}
          values={[{ label: created.kind === 'secret' ? 'Secret key' : 'Publishable key', value: created.key }]}>
          {created.kind === 'secret' && <p>Keep it on servers. Whoever has it reads and changes everything.</p>}
        </ShownOnce>
      )}
      {revoked && (
        <Confirm title="Revoke key" open action="Revoke key" onClose={() => setRevoked(undefined)} onSubmit={async () => {
          await read(api.DELETE('/projects/{projectUUID}/keys/{keyUUID}', {
            params: { path: { projectUUID: project, keyUUID: revoked.uuid } },
          }))
          await queries.invalidateQueries({ queryKey: ['keys', project] })
        }}>
          Programs with the key <b>{revoked.name}</b> are refused within seconds. A revoked key does not come back.
        </Confirm>
      )}
    </Card>
  )
}

function NewKey({ project, onClose, onCreated }: {
  project: string
  onClose: () => void
  onCreated: (key: Created) => void
}) {
  const [name, setName] = useState('')
  const [kind, setKind] = useState<Kind>('publishable')
  const [idempotency] = useState(() => crypto.randomUUID())

  async function create() {
    const { metadata } = await read(api.POST('/projects/{projectUUID}/keys', {
      params: { path: { projectUUID: project } },
      body: { name, kind },
      headers: { 'Idempotency-Key': idempotency },
    }))
    onCreated({ name, kind, key: metadata.key })
    await queries.invalidateQueries({ queryKey: ['keys', project] })
  }

  return (
    <FormDialog title="New API key" open onClose={onClose} action="Create key" onSubmit={create}>
      <TextField label="Name" required maxLength={100} autoFocus value={name} hint="Where it is used, such as web or server."
        onChange={(e) => setName(e.target.value)} />
      <SelectField label="Kind" value={kind} onChange={(e) => setKind(e.target.value === 'secret' ? 'secret' : 'publishable')}>
        <option value="publishable">publishable: acts as anon, may be public</option>
        <option value="secret">secret: acts as service_role, stays on servers</option>
      </SelectField>
    </FormDialog>
  )
}
