import { useState } from 'react'
import { useQuery } from '@tanstack/react-query'
import { api, read, type Schemas } from '../../api/client'
import { Badge, Copyable, Time } from '../../components/Bits'
import { Button } from '../../components/Button'
import { Confirm, FormDialog } from '../../components/Dialog'
import { TextArea } from '../../components/Field'
import { Card } from '../../components/Page'
import { Empty, Loaded } from '../../components/States'
import { Pager, Table } from '../../components/Table'
import { toast } from '../../components/Toast'
import { queries } from '../../queries'
import { useURLState } from '../../url'
import { parseJWK } from './jwk'

type Key = Schemas['JWTKey']

/** What verifies the tokens of users: the secret, keys of other issuers, and the project's own key. */
export function JWTKeys({ project }: { project: string }) {
  return (
    <>
      <Secret project={project} />
      <VerificationKeys project={project} />
      <OwnKey project={project} />
    </>
  )
}

function Secret({ project }: { project: string }) {
  const [wanted, setWanted] = useState(false)
  const query = useQuery({
    queryKey: ['jwt secret', project],
    enabled: wanted,
    gcTime: 0, // a secret does not stay in memory
    queryFn: () => read(api.GET('/projects/{projectUUID}/jwt-secret', { params: { path: { projectUUID: project } } })),
  })

  return (
    <Card title="JWT secret"
      lead="Your own server signs tokens with it (HS256), to identify your users to the rows API. The claim role is anon, authenticated or service_role; policies can read all claims."
      actions={<Button needs="getJWTSecret" onClick={() => setWanted(!wanted)}>{wanted ? 'Hide secret' : 'Show secret'}</Button>}>
      {wanted && (
        <Loaded query={query} rows={1}>
          {({ content }) => <Copyable value={content.secret} label="the JWT secret" />}
        </Loaded>
      )}
    </Card>
  )
}

function VerificationKeys({ project }: { project: string }) {
  const [page, setPage] = useURLState('page', '1')
  const [creates, setCreates] = useState(false)
  const [deleted, setDeleted] = useState<Key>()
  const query = useQuery({
    queryKey: ['jwt keys', project, page],
    queryFn: () => read(api.GET('/projects/{projectUUID}/jwt-keys', {
      params: { path: { projectUUID: project }, query: { page: Number(page) } },
    })),
  })
  const create = <Button needs="createJWTKey" look="primary" onClick={() => setCreates(true)}>Add verification key</Button>

  return (
    <Card title="Verification keys" actions={create}
      lead="Public keys of another issuer, such as your identity provider. Tokens that its private key signed are accepted (ES256 or RS256).">
      <Loaded query={query}>
        {({ content, metadata }) => content.length === 0 ? (
          <Empty title="No verification key">Add one if users sign in elsewhere.</Empty>
        ) : (
          <>
            <Table label="Verification keys" rows={content} keyOf={(k) => k.uuid} columns={[
              { title: 'Key ID', cell: (k) => <Copyable value={k.kid} label="the key ID" /> },
              { title: 'Algorithm', cell: (k) => <Badge>{k.algorithm}</Badge> },
              { title: 'Added', cell: (k) => <Time at={k.createdAt} />, narrow: true },
              { title: '', align: 'right', cell: (k) => (
                <Button needs="deleteJWTKey" look="danger" aria-label={`Delete key ${k.kid}`} onClick={() => setDeleted(k)}>
                  Delete
                </Button>
              ) },
            ]} />
            <Pager page={metadata.page} pages={metadata.totalPages} total={metadata.total}
              onPage={(n) => setPage(String(n))} />
          </>
        )}
      </Loaded>
      {creates && <NewKey project={project} onClose={() => setCreates(false)} />}
      {deleted && (
        <Confirm title="Delete verification key" open action="Delete key" onClose={() => setDeleted(undefined)}
          onSubmit={async () => {
            await read(api.DELETE('/projects/{projectUUID}/jwt-keys/{jwtKeyUUID}', {
              params: { path: { projectUUID: project, jwtKeyUUID: deleted.uuid } },
            }))
            await queries.invalidateQueries({ queryKey: ['jwt keys', project] })
          }}>
          Tokens signed by the key <code>{deleted.kid}</code> are refused within seconds. You can add the key again.
        </Confirm>
      )}
    </Card>
  )
}

function NewKey({ project, onClose }: { project: string; onClose: () => void }) {
  const [text, setText] = useState('')
  const [idempotency] = useState(() => crypto.randomUUID())

  async function create() {
    await read(api.POST('/projects/{projectUUID}/jwt-keys', {
      params: { path: { projectUUID: project } },
      body: parseJWK(text),
      headers: { 'Idempotency-Key': idempotency },
    }))
    await queries.invalidateQueries({ queryKey: ['jwt keys', project] })
  }

  return (
    <FormDialog title="New verification key" open onClose={onClose} action="Add key" onSubmit={create}>
      <TextArea label="Public key" required autoFocus rows={8} spellCheck={false} value={text}
        placeholder='{"kty": "EC", "crv": "P-256", "x": "…", "y": "…"}' onChange={(e) => setText(e.target.value)}
        hint="A JSON Web Key, as in your provider's jwks.json. Without kid, the key's thumbprint is its ID." />
    </FormDialog>
  )
}

function OwnKey({ project }: { project: string }) {
  const [asks, setAsks] = useState(false)

  return (
    <Card title="Key of end users' tokens" actions={<Button needs="rotateAuthKey" onClick={() => setAsks(true)}>Rotate key</Button>}
      lead="Socle signs the access tokens of this project's users with it. Rotate it if it may be known.">
      {asks && (
        <Confirm title="Rotate key" open action="Rotate key" onClose={() => setAsks(false)} onSubmit={async () => {
          const { content } = await read(api.POST('/projects/{projectUUID}/auth-key/rotate', {
            params: { path: { projectUUID: project } },
          }))
          toast(`New tokens have key ${content.generation}.`)
        }}>
          New access tokens have the new key within seconds. Tokens of the present key stay valid to their end. Tokens of
          older keys are refused: their users sign in again.
        </Confirm>
      )}
    </Card>
  )
}
