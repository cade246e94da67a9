import { useState } from 'react'
import { useQuery } from '@tanstack/react-query'
import { texts } from '#texts/edgefunctions'
import { api, read } from '../../api/client'
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

/** Secrets in the environment of all functions. No answer of the API has one. */
export function FunctionSecrets({ project }: { project: string }) {
  const [page, setPage] = useURLState('page', '1')
  const [edited, setEdited] = useState<string>() // '': a new one
  const [deleted, setDeleted] = useState<string>()
  const query = useQuery({
    queryKey: ['edge function secrets', project, page],
    queryFn: () => read(api.GET('/projects/{projectUUID}/edge-function-secrets', {
      params: { path: { projectUUID: project }, query: { page: Number(page) || 1, sort: 'name' } },
    })),
  })
  const create = <Button needs="setEdgeFunctionSecret" look="primary" onClick={() => setEdited('')}>{texts.addSecret}</Button>

  return (
    <>
      <Card title={texts.secrets} actions={create} lead={texts.allFunctionsHaveThemIn}>
        <Loaded query={query}>
          {({ content, metadata }) => content.length === 0 ? (
            <Empty title={texts.noSecretYet} action={create}>{texts.keepTheKeyOfAnother}</Empty>
          ) : (
            <>
              <Table label={texts.secretsOfEdgeFunctions} rows={content} keyOf={(s) => s.name} columns={[
                { title: texts.name, cell: (s) => <code>{s.name}</code> },
                { title: texts.changed, cell: (s) => <Time at={s.updatedAt} />, narrow: true },
                { title: '', align: 'right', cell: (s) => (
                  <Row>
                    <Button needs="setEdgeFunctionSecret" aria-label={texts.replaceSecretName(s.name)} onClick={() => setEdited(s.name)}>{texts.replace}</Button>
                    <Button needs="deleteEdgeFunctionSecret" look="danger" aria-label={texts.deleteSecretName(s.name)}
                      onClick={() => setDeleted(s.name)}>{texts.delete}</Button>
                  </Row>
                ) },
              ]} />
              <Pager page={metadata.page} pages={metadata.totalPages} total={metadata.total} onPage={(n) => setPage(String(n))} />
            </>
          )}
        </Loaded>
      </Card>
      <Card title={texts.readASecret} lead={texts.inAFunction}>
        <Code label={texts.theCode} text={texts.constKeyDenoEnvGet} />
      </Card>
      {edited !== undefined && <SecretForm project={project} former={edited} onClose={() => setEdited(undefined)} />}
      {deleted !== undefined && (
        <Confirm title={texts.deleteSecret} open action={texts.deleteSecret} onClose={() => setDeleted(undefined)} onSubmit={async () => {
          await read(api.DELETE('/projects/{projectUUID}/edge-function-secrets/{secretName}', {
            params: { path: { projectUUID: project, secretName: deleted } },
          }))
          await queries.invalidateQueries({ queryKey: ['edge function secrets', project] })
        }}>
          {texts.functionsThatReadFindNothing(<b>{deleted}</b>)}
        </Confirm>
      )}
    </>
  )
}

/** Adds a secret, or replaces one. */
function SecretForm({ project, former, onClose }: { project: string; former: string; onClose: () => void }) {
  const [name, setName] = useState(former)
  const [value, setValue] = useState('')
  const [lines, setLines] = useState(false)
  const text = {
    label: texts.value, hint: texts.itIsNotShownAgain, required: true, maxLength: 49_152, autoComplete: 'off', spellCheck: false, value,
  }

  async function save() {
    await read(api.PUT('/projects/{projectUUID}/edge-function-secrets/{secretName}', {
      params: { path: { projectUUID: project, secretName: name } }, body: { value },
    }))
    toast(texts.nameIsSet(name))
    await queries.invalidateQueries({ queryKey: ['edge function secrets', project] })
  }

  return (
    <FormDialog title={former === '' ? texts.newSecret : texts.replaceFormer(former)} open onClose={onClose} action={texts.setSecret} onSubmit={save}>
      {former === '' && (
        <TextField label={texts.name} required maxLength={255} autoFocus autoComplete="off" value={name} placeholder={texts.stripeKEY}
          pattern="[A-Za-z_][A-Za-z0-9_]*" hint={texts.lettersDigitsAndUnderscoresA}
          onChange={(e) => setName(e.target.value)} />
      )}
      {lines ? <TextArea {...text} rows={6} onChange={(e) => setValue(e.target.value)} />
        : <TextField {...text} type="password" autoComplete="new-password" onChange={(e) => setValue(e.target.value)} />}
      <CheckField label={texts.severalLinesReadableWhileYou} checked={lines} onChange={(e) => setLines(e.target.checked)}
        hint={texts.forKeysInPEMAnd} />
    </FormDialog>
  )
}
