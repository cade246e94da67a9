import { useState } from 'react'
import { useQuery } from '@tanstack/react-query'
import { api, read, type Schemas } from '../../api/client'
import { Copyable, Time } from '../../components/Bits'
import { Button } from '../../components/Button'
import { Confirm, FormDialog } from '../../components/Dialog'
import { TextField } from '../../components/Field'
import { Card } from '../../components/Page'
import { ShownOnce } from '../../components/ShownOnce'
import { Empty, Loaded } from '../../components/States'
import { Pager, Table } from '../../components/Table'
import { queries } from '../../queries'
import { useURLState } from '../../url'

type Key = Schemas['S3Key']

interface Created {
  key: Key
  secret: string
}

/** Keys for programs that speak the S3 protocol. */
export function S3Keys({ project }: { project: string }) {
  const [page, setPage] = useURLState('page', '1')
  const [creates, setCreates] = useState(false)
  const [created, setCreated] = useState<Created>()
  const [revoked, setRevoked] = useState<Key>()
  const endpoint = `${location.origin}/projects/${project}/storage/v1/s3`
  const query = useQuery({
    queryKey: ['s3 keys', project, page],
    queryFn: () => read(api.GET('/projects/{projectUUID}/s3-keys', {
      params: { path: { projectUUID: project }, query: { page: Number(page), sort: 'createdAt', order: 'desc' } },
    })),
  })
  const create = <Button needs="createS3Key" look="primary" onClick={() => setCreates(true)}>Create S3 key</Button>

  return (
    <Card title="S3 keys" actions={create}
      lead="rclone, aws s3 and other programs reach the project's files with them. No policy restricts them: keep them on servers.">
      <div>Endpoint <Copyable value={endpoint} label="the S3 endpoint" /></div>
      <Loaded query={query}>
        {({ content, metadata }) => content.length === 0 ? (
          <Empty title="No S3 key yet" action={create}>Create one for a program that copies or backs up files.</Empty>
        ) : (
          <>
            <Table label="S3 keys" rows={content} keyOf={(k) => k.uuid} columns={[
              { title: 'Name', cell: (k) => k.name },
              { title: 'Access key ID', cell: (k) => <Copyable value={k.accessKeyId} label="the access key ID" />, narrow: true },
              { title: 'Created', cell: (k) => <Time at={k.createdAt} />, narrow: true },
              { title: '', align: 'right', cell: (k) => (
                <Button needs="deleteS3Key" look="danger" aria-label={`Revoke S3 key ${k.name}`} onClick={() => setRevoked(k)}>
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
        <ShownOnce title={`S3 key ${created.key.name}`} onClose={() => setCreated(undefined)} values={[
          { label: 'Access key ID', value: created.key.accessKeyId },
          { label: 'Secret access key', value: created.secret },
          { label: 'Endpoint', value: endpoint },
        ]} />
      )}
      {revoked && (
        <Confirm title="Revoke S3 key" open action="Revoke key" onClose={() => setRevoked(undefined)} onSubmit={async () => {
          await read(api.DELETE('/projects/{projectUUID}/s3-keys/{keyUUID}', {
            params: { path: { projectUUID: project, keyUUID: revoked.uuid } },
          }))
          await queries.invalidateQueries({ queryKey: ['s3 keys', project] })
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
  const [idempotency] = useState(() => crypto.randomUUID())

  async function create() {
    const { content, metadata } = await read(api.POST('/projects/{projectUUID}/s3-keys', {
      params: { path: { projectUUID: project } },
      body: { name },
      headers: { 'Idempotency-Key': idempotency },
    }))
    onCreated({ key: content, secret: metadata.secretAccessKey })
    await queries.invalidateQueries({ queryKey: ['s3 keys', project] })
  }

  return (
    <FormDialog title="New S3 key" open onClose={onClose} action="Create S3 key" onSubmit={create}>
      <TextField label="Name" required maxLength={100} autoFocus value={name} onChange={(e) => setName(e.target.value)} />
    </FormDialog>
  )
}
