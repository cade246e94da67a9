import { useState } from 'react'
import { Link } from '@tanstack/react-router'
import { useMutation, useQuery } from '@tanstack/react-query'
import { api, read, type Schemas } from '../../api/client'
import { Code, Copyable } from '../../components/Bits'
import { Button } from '../../components/Button'
import { Confirm } from '../../components/Dialog'
import { Card, Row } from '../../components/Page'
import { Empty, FailureNote } from '../../components/States'
import { queries } from '../../queries'

type Form = Schemas['FullForm']

/** The public link of a form, and how to put it on a page. */
export function Sharing({ project, form }: { project: string; form: Form }) {
  const [asked, setAsked] = useState<'replace' | 'delete' | null>(null)
  const params = { path: { formUUID: form.uuid } }
  const refresh = () => queries.invalidateQueries({ queryKey: ['forms', project] })
  const create = useMutation({ mutationFn: () => read(api.POST('/forms/{formUUID}/link', { params })), onSuccess: refresh })

  if (form.pagePath === null) {
    return (
      <Card title="Public link">
        <Empty title="This form has no public link"
          action={<Button needs="linkForm" look="primary" busy={create.isPending} onClick={() => create.mutate()}>Create link</Button>}>
          With a link, anyone who has it can fill in the form while it is open.
        </Empty>
        {create.error !== null && <FailureNote error={create.error} />}
      </Card>
    )
  }

  const url = location.origin + form.pagePath
  return (
    <>
      {form.state !== 'open' && <NotOpen project={project} form={form} />}
      <Card title="Public link" lead="Anyone who has it can fill in the form while it is open." actions={
        <Row>
          <Button needs="linkForm" onClick={() => setAsked('replace')}>Replace link</Button>
          <Button needs="unlinkForm" look="danger" onClick={() => setAsked('delete')}>Delete link</Button>
        </Row>
      }>
        <Copyable value={url} label="link" />
        <p><a href={url} target="_blank" rel="noopener noreferrer">Open the form's page</a></p>
      </Card>
      <Embed project={project} form={form} url={url} />
      {asked !== null && (
        <Confirm title={asked === 'replace' ? 'Replace the link' : 'Delete the link'} open onClose={() => setAsked(null)}
          action={asked === 'replace' ? 'Replace link' : 'Delete link'} onSubmit={async () => {
            await (asked === 'replace' ? read(api.POST('/forms/{formUUID}/link', { params }))
              : read(api.DELETE('/forms/{formUUID}/link', { params })))
            await refresh()
          }}>
          <p>The present link stops working at once, also where it is embedded. Responses remain.</p>
        </Confirm>
      )}
    </>
  )
}

function NotOpen({ project, form }: { project: string; form: Form }) {
  const open = useMutation({
    mutationFn: () => read(api.PUT('/forms/{formUUID}', { params: { path: { formUUID: form.uuid } }, body: { state: 'open' } })),
    onSuccess: () => queries.invalidateQueries({ queryKey: ['forms', project] }),
  })

  return (
    <Card title="The form is not open" lead="It accepts no responses yet.">
      <Row>
        <Button needs="updateForm" look="primary" busy={open.isPending} onClick={() => open.mutate()}>Open form</Button>
      </Row>
      {open.error !== null && <FailureNote error={open.error} />}
    </Card>
  )
}

function Embed({ project, form, url }: { project: string; form: Form; url: string }) {
  const fields = useQuery({
    queryKey: ['forms', project, 'fields', form.uuid],
    queryFn: () => read(api.GET('/forms/{formUUID}/fields', { params: { path: { formUUID: form.uuid } } })),
  })
  const nameOf = (uuid: string) => fields.data?.metadata.names[uuid] ?? uuid
  const title = form.name.replace(/[&<>"]/g, (c) => `&#${c.charCodeAt(0)};`)

  return (
    <Card title="Embed" lead={form.embedOrigins.length === 0 ? (
      <>
        No site may embed the page yet.{' '}
        <Link to={`/projects/${project}/forms/${form.uuid}` as string} search={{ tab: 'settings' } as never}>Name your site</Link>{' '}
        first.
      </>
    ) : `Allowed on ${form.embedOrigins.join(', ')}.`}>
      <Code label="frame" text={`<iframe src="${url}" title="${title}" width="100%" height="640"></iframe>`} />
      <h3>An HTML form of your own</h3>
      <Code label="HTML form" text={
        `<form method="post" action="${url}">\n${form.fields.slice(0, 3).map((f) => `  <input name="${nameOf(f.uuid)}">\n`).join('')}`
        + '  <button>Send</button>\n</form>'
      } />
      <h3>From a script</h3>
      <Code label="curl command" text={
        `curl '${location.origin}/forms/${form.uuid}/responses?link=${form.link}' \\\n`
        + `  -H 'Content-Type: application/json' \\\n  -d '{"answers": {"${nameOf(form.fields[0]?.uuid ?? 'FIELD')}": "…"}}'`
      } />
    </Card>
  )
}
