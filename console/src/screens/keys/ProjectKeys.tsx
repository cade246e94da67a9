import { useState } from 'react'
import { useQuery } from '@tanstack/react-query'
import { texts } from '#texts/keys'
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
  const create = <Button needs="createKey" look="primary" onClick={() => setCreates(true)}>{texts.createKey}</Button>

  return (
    <Card title={texts.apiKeys} actions={create}
      lead={texts.aPublishableKeyMayStand}>
      <Loaded query={query}>
        {({ content, metadata }) => content.length === 0 ? (
          <Empty title={texts.noKeyYet} action={create}>{texts.anApplicationNeedsAKey}</Empty>
        ) : (
          <>
            <Table label={texts.apiKeys} rows={content} keyOf={(k) => k.uuid} columns={[
              { title: texts.name, cell: (k) => k.name },
              { title: texts.kind, cell: (k) => <Badge tone={k.kind === 'secret' ? 'warning' : 'neutral'}>{k.kind}</Badge> },
              { title: texts.beginsWith, cell: (k) => <code>{k.hint}…</code>, narrow: true },
              { title: texts.created, cell: (k) => <Time at={k.createdAt} />, narrow: true },
              { title: '', align: 'right', cell: (k) => (
                <Button needs="deleteKey" look="danger" aria-label={texts.revokeKeyName(k.name)} onClick={() => setRevoked(k)}>
                  {texts.revoke}
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
        <ShownOnce title={texts.keyName(created.name)} onClose={() => setCreated(undefined)}
          values={[{ label: created.kind === 'secret' ? texts.secretKey : texts.publishableKey, value: created.key }]}>
          {created.kind === 'secret' && <p>{texts.keepItOnServersWhoever}</p>}
        </ShownOnce>
      )}
      {revoked && (
        <Confirm title={texts.revokeKey} open action={texts.revokeKey} onClose={() => setRevoked(undefined)} onSubmit={async () => {
          await read(api.DELETE('/projects/{projectUUID}/keys/{keyUUID}', {
            params: { path: { projectUUID: project, keyUUID: revoked.uuid } },
          }))
          await queries.invalidateQueries({ queryKey: ['keys', project] })
        }}>
          {texts.programsWithTheKeyAre(<b>{revoked.name}</b>)}
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
    <FormDialog title={texts.newAPIKey} open onClose={onClose} action={texts.createKey} onSubmit={create}>
      <TextField label={texts.name} required maxLength={100} autoFocus value={name} hint={texts.whereItIsUsedSuch}
        onChange={(e) => setName(e.target.value)} />
      <SelectField label={texts.kind} value={kind} onChange={(e) => setKind(e.target.value === 'secret' ? 'secret' : 'publishable')}>
        <option value="publishable">{texts.publishableActsAsAnonMay}</option>
        <option value="secret">{texts.secretActsAsServiceRole}</option>
      </SelectField>
    </FormDialog>
  )
}
