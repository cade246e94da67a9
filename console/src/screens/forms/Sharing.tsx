import { useState } from 'react'
import { Link } from '@tanstack/react-router'
import { useMutation, useQuery } from '@tanstack/react-query'
import { texts } from '#texts/forms'
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
      <Card title={texts.publicLink}>
        <Empty title={texts.thisFormHasNoPublic}
          action={<Button needs="linkForm" look="primary" busy={create.isPending} onClick={() => create.mutate()}>{texts.createLink}</Button>}>
          {texts.withALinkAnyoneWho}
        </Empty>
        {create.error !== null && <FailureNote error={create.error} />}
      </Card>
    )
  }

  const url = location.origin + form.pagePath
  return (
    <>
      {form.state !== 'open' && <NotOpen project={project} form={form} />}
      <Card title={texts.publicLink} lead={texts.anyoneWhoHasItCan} actions={
        <Row>
          <Button needs="linkForm" onClick={() => setAsked('replace')}>{texts.replaceLink}</Button>
          <Button needs="unlinkForm" look="danger" onClick={() => setAsked('delete')}>{texts.deleteLink}</Button>
        </Row>
      }>
        <Copyable value={url} label={texts.link2} />
        <p><a href={url} target="_blank" rel="noopener noreferrer">{texts.openTheFormsPage}</a></p>
      </Card>
      <Embed project={project} form={form} url={url} />
      {asked !== null && (
        <Confirm title={asked === 'replace' ? texts.replaceTheLink : texts.deleteTheLink} open onClose={() => setAsked(null)}
          action={asked === 'replace' ? texts.replaceLink : texts.deleteLink} onSubmit={async () => {
            await (asked === 'replace' ? read(api.POST('/forms/{formUUID}/link', { params }))
              : read(api.DELETE('/forms/{formUUID}/link', { params })))
            await refresh()
          }}>
          <p>{texts.thePresentLinkStopsWorking}</p>
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
    <Card title={texts.theFormIsNotOpen} lead={texts.itAcceptsNoResponsesYet}>
      <Row>
        <Button needs="updateForm" look="primary" busy={open.isPending} onClick={() => open.mutate()}>{texts.openForm}</Button>
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
    <Card title={texts.embed} lead={form.embedOrigins.length === 0 ? (
      <>
        {texts.noSiteMayEmbedThe(<Link to={`/projects/${project}/forms/${form.uuid}` as string} search={{ tab: 'settings' } as never}>{texts.nameYourSite}</Link>)}
      </>
    ) : texts.allowedOnEmbedOrigins(form.embedOrigins.join(', '))}>
      <Code label={texts.frame} text={texts.iframeSrcTitleWidthThe100(url, title)} />
      <h3>{texts.anHTMLFormOfYour}</h3>
      <Code label={texts.htmlForm} text={texts.formMethodPostActionUrl(url, form.fields.slice(0, 3).map((f) => `  <input name="${nameOf(f.uuid)}">\n`).join(''))
        + texts.buttonSendButtonForm} />
      <h3>{texts.fromAScript}</h3>
      <Code label={texts.curlCommand} text={texts.curlOriginFormsUuidResponses(location.origin, form.uuid, String(form.link))
        + texts.hContentTypeApplicationJson(nameOf(form.fields[0]?.uuid ?? 'FIELD'))} />
    </Card>
  )
}
