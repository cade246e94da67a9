import { useState } from 'react'
import { useQuery } from '@tanstack/react-query'
import { texts } from '#texts/keys'
import { api, read, type Schemas } from '../../api/client'
import { Code, Time } from '../../components/Bits'
import { Button } from '../../components/Button'
import { Confirm, FormDialog } from '../../components/Dialog'
import { CheckField, TextArea, TextField } from '../../components/Field'
import { Card, Row } from '../../components/Page'
import { Empty, Loaded } from '../../components/States'
import { Pager, Table } from '../../components/Table'
import { toast } from '../../components/Toast'
import { queries } from '../../queries'
import { useURLState } from '../../url'

type Secret = Schemas['Secret']

/** Names a secret; one that SQL has created may have no name. */
const nameOf = (s: Secret) => s.name ?? texts.unnamedUuid(s.uuid.slice(0, 8))

const readByName = "select decrypted_secret from vault.decrypted_secrets where name = 'stripe_key'"

/** Secrets that SQL of the project's owner reads. No answer of the API has one. */
export function VaultSecrets({ project }: { project: string }) {
  const [page, setPage] = useURLState('page', '1')
  const [creates, setCreates] = useState(false)
  const [changed, setChanged] = useState<Secret>()
  const [deleted, setDeleted] = useState<Secret>()
  const query = useQuery({
    queryKey: ['vault secrets', project, page],
    queryFn: () => read(api.GET('/projects/{projectUUID}/vault-secrets', {
      params: { path: { projectUUID: project }, query: { page: Number(page), sort: 'name', order: 'asc' } },
    })),
  })
  const create = <Button needs="createVaultSecret" look="primary" onClick={() => setCreates(true)}>{texts.createSecret}</Button>

  return (
    <>
      <Card title={texts.vault} actions={create}
        lead={texts.secretsOfOtherServicesFor}>
        <Loaded query={query}>
          {({ content, metadata }) => content.length === 0 ? (
            <Empty title={texts.noSecretYet} action={create}>
              {texts.keepTheKeyOfA}
            </Empty>
          ) : (
            <>
              <Table label={texts.secretsInTheVault} rows={content} keyOf={(s) => s.uuid} columns={[
                { title: texts.name, cell: nameOf },
                { title: texts.description, cell: (s) => s.description, narrow: true },
                { title: texts.changed, cell: (s) => <Time at={s.updatedAt} />, narrow: true },
                { title: '', align: 'right', cell: (s) => (
                  <Row>
                    <Button needs="updateVaultSecret" aria-label={texts.changeSecretS(nameOf(s))} onClick={() => setChanged(s)}>{texts.change}</Button>
                    <Button needs="deleteVaultSecret" look="danger" aria-label={texts.deleteSecretS(nameOf(s))} onClick={() => setDeleted(s)}>
                      {texts.delete}
                    </Button>
                  </Row>
                ) },
              ]} />
              <Pager page={metadata.page} pages={metadata.totalPages} total={metadata.total}
                onPage={(n) => setPage(String(n))} />
            </>
          )}
        </Loaded>
      </Card>
      <Card title={texts.readASecret} lead={texts.bySQLAsTheProjects}>
        <Code label={texts.theStatement} text={readByName} />
      </Card>
      {creates && <SecretForm project={project} onClose={() => setCreates(false)} />}
      {changed && <SecretForm project={project} former={changed} onClose={() => setChanged(undefined)} />}
      {deleted && (
        <Confirm title={texts.deleteSecret} open action={texts.deleteSecret} onClose={() => setDeleted(undefined)} onSubmit={async () => {
          await read(api.DELETE('/projects/{projectUUID}/vault-secrets/{vaultSecretUUID}', {
            params: { path: { projectUUID: project, vaultSecretUUID: deleted.uuid } },
          }))
          await queries.invalidateQueries({ queryKey: ['vault secrets', project] })
        }}>
          {texts.functionsThatReadFindNothing(<b>{nameOf(deleted)}</b>)}
        </Confirm>
      )}
    </>
  )
}

/** Creates a secret, or changes one: an empty secret keeps the former. */
function SecretForm({ project, former, onClose }: { project: string; former?: Secret; onClose: () => void }) {
  const [name, setName] = useState(former?.name ?? '')
  const [description, setDescription] = useState(former?.description ?? '')
  const [secret, setSecret] = useState('')
  const [lines, setLines] = useState(false)
  const [idempotency] = useState(() => crypto.randomUUID())
  const text = {
    label: former === undefined ? texts.secret : texts.newSecret,
    hint: former === undefined ? texts.itIsNotShownAgain : texts.emptyTheSecretStaysAs,
    required: former === undefined, maxLength: 65_536, autoComplete: 'off', spellCheck: false, value: secret,
  }

  async function save() {
    if (former === undefined) {
      await read(api.POST('/projects/{projectUUID}/vault-secrets', {
        params: { path: { projectUUID: project } },
        body: { name, secret, ...(description !== '' && { description }) },
        headers: { 'Idempotency-Key': idempotency },
      }))
    } else {
      await read(api.PUT('/projects/{projectUUID}/vault-secrets/{vaultSecretUUID}', {
        params: { path: { projectUUID: project, vaultSecretUUID: former.uuid } },
        body: {
          ...(name !== (former.name ?? '') && { name }),
          ...(description !== former.description && { description }),
          ...(secret !== '' && { secret }),
        },
      }))
    }
    toast(former === undefined ? texts.nameIsInTheVault(name) : texts.theSecretIsChanged)
    await queries.invalidateQueries({ queryKey: ['vault secrets', project] })
  }

  return (
    <FormDialog title={former === undefined ? texts.newSecret : texts.changeSecret} open onClose={onClose} onSubmit={save}
      action={former === undefined ? texts.createSecret : texts.saveChanges}>
      <TextField label={texts.name} required={former?.name !== null} maxLength={255} autoFocus value={name} autoComplete="off" placeholder={texts.stripeKey}
        onChange={(e) => setName(e.target.value)} />
      {lines ? <TextArea {...text} rows={6} onChange={(e) => setSecret(e.target.value)} />
        : <TextField {...text} type="password" autoComplete="new-password" onChange={(e) => setSecret(e.target.value)} />}
      <CheckField label={texts.severalLinesReadableWhileYou} checked={lines} onChange={(e) => setLines(e.target.checked)}
        hint={texts.forKeysInPEMAnd} />
      <TextField label={texts.description} maxLength={4096} value={description} onChange={(e) => setDescription(e.target.value)} />
    </FormDialog>
  )
}
