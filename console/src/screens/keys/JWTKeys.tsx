import { useState } from 'react'
import { useQuery } from '@tanstack/react-query'
import { texts } from '#texts/keys'
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
    <Card title={texts.jwtSecret}
      lead={texts.yourOwnServerSignsTokens}
      actions={<Button needs="getJWTSecret" onClick={() => setWanted(!wanted)}>{wanted ? texts.hideSecret : texts.showSecret}</Button>}>
      {wanted && (
        <Loaded query={query} rows={1}>
          {({ content }) => <Copyable value={content.secret} label={texts.theJWTSecret} />}
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
  const create = <Button needs="createJWTKey" look="primary" onClick={() => setCreates(true)}>{texts.addVerificationKey}</Button>

  return (
    <Card title={texts.verificationKeys} actions={create}
      lead={texts.publicKeysOfAnotherIssuer}>
      <Loaded query={query}>
        {({ content, metadata }) => content.length === 0 ? (
          <Empty title={texts.noVerificationKey}>{texts.addOneIfUsersSign}</Empty>
        ) : (
          <>
            <Table label={texts.verificationKeys} rows={content} keyOf={(k) => k.uuid} columns={[
              { title: texts.keyID, cell: (k) => <Copyable value={k.kid} label={texts.theKeyID} /> },
              { title: texts.algorithm, cell: (k) => <Badge>{k.algorithm}</Badge> },
              { title: texts.added, cell: (k) => <Time at={k.createdAt} />, narrow: true },
              { title: '', align: 'right', cell: (k) => (
                <Button needs="deleteJWTKey" look="danger" aria-label={texts.deleteKeyKid(k.kid)} onClick={() => setDeleted(k)}>
                  {texts.delete}
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
        <Confirm title={texts.deleteVerificationKey} open action={texts.deleteKey} onClose={() => setDeleted(undefined)}
          onSubmit={async () => {
            await read(api.DELETE('/projects/{projectUUID}/jwt-keys/{jwtKeyUUID}', {
              params: { path: { projectUUID: project, jwtKeyUUID: deleted.uuid } },
            }))
            await queries.invalidateQueries({ queryKey: ['jwt keys', project] })
          }}>
          {texts.tokensSignedByTheKey(<code>{deleted.kid}</code>)}
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
    <FormDialog title={texts.newVerificationKey} open onClose={onClose} action={texts.addKey} onSubmit={create}>
      <TextArea label={texts.publicKey} required autoFocus rows={8} spellCheck={false} value={text}
        placeholder={texts.ktyECCrvPThe256} onChange={(e) => setText(e.target.value)}
        hint={texts.aJSONWebKeyAs} />
    </FormDialog>
  )
}

function OwnKey({ project }: { project: string }) {
  const [asks, setAsks] = useState(false)

  return (
    <Card title={texts.keyOfEndUsersTokens} actions={<Button needs="rotateAuthKey" onClick={() => setAsks(true)}>{texts.rotateKey}</Button>}
      lead={texts.socleSignsTheAccessTokens}>
      {asks && (
        <Confirm title={texts.rotateKey} open action={texts.rotateKey} onClose={() => setAsks(false)} onSubmit={async () => {
          const { content } = await read(api.POST('/projects/{projectUUID}/auth-key/rotate', {
            params: { path: { projectUUID: project } },
          }))
          toast(texts.newTokensHaveKeyGeneration(content.generation))
        }}>
          {texts.newAccessTokensHaveThe}
        </Confirm>
      )}
    </Card>
  )
}
