import { useState } from 'react'
import { useQuery } from '@tanstack/react-query'
import { texts } from '#texts/keys'
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
  const create = <Button needs="createS3Key" look="primary" onClick={() => setCreates(true)}>{texts.createS3Key}</Button>

  return (
    <Card title={texts.s3Keys} actions={create}
      lead={texts.rcloneAwsS3AndOther}>
      <div>{texts.endpointCopyable(<Copyable value={endpoint} label={texts.theS3Endpoint} />)}</div>
      <Loaded query={query}>
        {({ content, metadata }) => content.length === 0 ? (
          <Empty title={texts.noS3KeyYet} action={create}>{texts.createOneForAProgram}</Empty>
        ) : (
          <>
            <Table label={texts.s3Keys} rows={content} keyOf={(k) => k.uuid} columns={[
              { title: texts.name, cell: (k) => k.name },
              { title: texts.accessKeyID, cell: (k) => <Copyable value={k.accessKeyId} label={texts.theAccessKeyID} />, narrow: true },
              { title: texts.created, cell: (k) => <Time at={k.createdAt} />, narrow: true },
              { title: '', align: 'right', cell: (k) => (
                <Button needs="deleteS3Key" look="danger" aria-label={texts.revokeS3KeyName(k.name)} onClick={() => setRevoked(k)}>
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
        <ShownOnce title={texts.s3KeyName(created.key.name)} onClose={() => setCreated(undefined)} values={[
          { label: texts.accessKeyID, value: created.key.accessKeyId },
          { label: texts.secretAccessKey, value: created.secret },
          { label: texts.endpoint, value: endpoint },
        ]} />
      )}
      {revoked && (
        <Confirm title={texts.revokeS3Key} open action={texts.revokeKey} onClose={() => setRevoked(undefined)} onSubmit={async () => {
          await read(api.DELETE('/projects/{projectUUID}/s3-keys/{keyUUID}', {
            params: { path: { projectUUID: project, keyUUID: revoked.uuid } },
          }))
          await queries.invalidateQueries({ queryKey: ['s3 keys', project] })
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
    <FormDialog title={texts.newS3Key} open onClose={onClose} action={texts.createS3Key} onSubmit={create}>
      <TextField label={texts.name} required maxLength={100} autoFocus value={name} onChange={(e) => setName(e.target.value)} />
    </FormDialog>
  )
}
