import { useState } from 'react'
import { useQuery } from '@tanstack/react-query'
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
  const create = <Button needs="setEdgeFunctionSecret" look="primary" onClick={() => setEdited('')}>Add secret</Button>

  return (
    <>
      <Card title="Secrets" actions={create} lead="All functions have them in their environment, from their next process on. They are not shown again.">
        <Loaded query={query}>
          {({ content, metadata }) => content.length === 0 ? (
            <Empty title="No secret yet" action={create}>Keep the key of another service here, instead of in a function’s text.</Empty>
          ) : (
            <>
              <Table label="Secrets of edge functions" rows={content} keyOf={(s) => s.name} columns={[
                { title: 'Name', cell: (s) => <code>{s.name}</code> },
                { title: 'Changed', cell: (s) => <Time at={s.updatedAt} />, narrow: true },
                { title: '', align: 'right', cell: (s) => (
                  <Row>
                    <Button needs="setEdgeFunctionSecret" aria-label={`Replace secret ${s.name}`} onClick={() => setEdited(s.name)}>Replace</Button>
                    <Button needs="deleteEdgeFunctionSecret" look="danger" aria-label={`Delete secret ${s.name}`}
                      onClick={() => setDeleted(s.name)}>Delete</Button>
                  </Row>
                ) },
              ]} />
              <Pager page={metadata.page} pages={metadata.totalPages} total={metadata.total} onPage={(n) => setPage(String(n))} />
            </>
          )}
        </Loaded>
      </Card>
      <Card title="Read a secret" lead="In a function:">
        <Code label="the code" text="const key = Deno.env.get('STRIPE_KEY')" />
      </Card>
      {edited !== undefined && <SecretForm project={project} former={edited} onClose={() => setEdited(undefined)} />}
      {deleted !== undefined && (
        <Confirm title="Delete secret" open action="Delete secret" onClose={() => setDeleted(undefined)} onSubmit={async () => {
          await read(api.DELETE('/projects/{projectUUID}/edge-function-secrets/{secretName}', {
            params: { path: { projectUUID: project, secretName: deleted } },
          }))
          await queries.invalidateQueries({ queryKey: ['edge function secrets', project] })
        }}>
          Functions that read <b>{deleted}</b> find nothing from their next process on. This cannot be undone.
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
    label: 'Value', hint: 'It is not shown again.', required: true, maxLength: 49_152, autoComplete: 'off', spellCheck: false, value,
  }

  async function save() {
    await read(api.PUT('/projects/{projectUUID}/edge-function-secrets/{secretName}', {
      params: { path: { projectUUID: project, secretName: name } }, body: { value },
    }))
    toast(`${name} is set.`)
    await queries.invalidateQueries({ queryKey: ['edge function secrets', project] })
  }

  return (
    <FormDialog title={former === '' ? 'New secret' : `Replace ${former}`} open onClose={onClose} action="Set secret" onSubmit={save}>
      {former === '' && (
        <TextField label="Name" required maxLength={255} autoFocus autoComplete="off" value={name} placeholder="STRIPE_KEY"
          pattern="[A-Za-z_][A-Za-z0-9_]*" hint="Letters, digits and underscores. A secret of this name is replaced."
          onChange={(e) => setName(e.target.value)} />
      )}
      {lines ? <TextArea {...text} rows={6} onChange={(e) => setValue(e.target.value)} />
        : <TextField {...text} type="password" autoComplete="new-password" onChange={(e) => setValue(e.target.value)} />}
      <CheckField label="Several lines, readable while you type" checked={lines} onChange={(e) => setLines(e.target.checked)}
        hint="For keys in PEM and other files." />
    </FormDialog>
  )
}
