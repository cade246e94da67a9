import { useState, type FormEvent } from 'react'
import { useNavigate } from '@tanstack/react-router'
import { useQuery } from '@tanstack/react-query'
import { api, inProject, read, type Schemas } from '../../api/client'
import { Button } from '../../components/Button'
import { Confirm } from '../../components/Dialog'
import { SelectField, TextArea, TextField } from '../../components/Field'
import { Card, Row, Stack } from '../../components/Page'
import { FailureNote } from '../../components/States'
import { toast } from '../../components/Toast'
import { queries } from '../../queries'
import { settingsOf, settingsPatch, type SettingsDraft } from './settings'
import css from './Form.module.css'

interface Part {
  draft: SettingsDraft
  set: (patch: Partial<SettingsDraft>) => void
}

/** All settings of a form, saved together. */
export function FormSettings({ project, form }: { project: string; form: Schemas['FullForm'] }) {
  const [before] = useState(() => settingsOf(form))
  const [draft, setDraft] = useState(before)
  const [busy, setBusy] = useState(false)
  const [failure, setFailure] = useState<unknown>(null)
  const patch = settingsPatch(before, draft)
  const part = { draft, set: (p: Partial<SettingsDraft>) => setDraft((former) => ({ ...former, ...p })) }

  async function save(e: FormEvent) {
    e.preventDefault()
    setBusy(true)
    setFailure(null)
    try {
      await read(api.PUT('/forms/{formUUID}', { params: { path: { formUUID: form.uuid } }, body: patch }))
      await queries.invalidateQueries({ queryKey: ['forms', project] })
      toast('The form is saved.')
    } catch (error) {
      setFailure(error)
    } finally {
      setBusy(false)
    }
  }

  return (
    <>
      <form onSubmit={(e) => void save(e)}>
        <Stack>
          <Card title="Form"><Basics {...part} /></Card>
          <Card title="Limits"><Limits {...part} project={project} /></Card>
          <Card title="After a response"><Afterwards {...part} unconfirmed={form.unconfirmedEmails} /></Card>
          <Card title="Page"><Appearance {...part} /></Card>
          {failure !== null && <FailureNote error={failure} />}
          <Row>
            <Button needs="updateForm" type="submit" look="primary" busy={busy} disabled={Object.keys(patch).length === 0}>
              Save settings
            </Button>
            <Button disabled={Object.keys(patch).length === 0} onClick={() => setDraft(before)}>Discard changes</Button>
          </Row>
        </Stack>
      </form>
      <DeleteForm project={project} form={form} />
    </>
  )
}

function Basics({ draft, set }: Part) {
  return (
    <>
      <TextField label="Name" required maxLength={100} value={draft.name} onChange={(e) => set({ name: e.target.value })} />
      <TextArea label="Description" maxLength={500} value={draft.description} onChange={(e) => set({ description: e.target.value })} />
      <SelectField label="State" value={draft.state} hint="Only an open form accepts responses."
        onChange={(e) => set({ state: e.target.value })}>
        <option value="draft">Draft</option>
        <option value="open">Open</option>
        <option value="closed">Closed</option>
      </SelectField>
    </>
  )
}

function Limits({ draft, set, project }: Part & { project: string }) {
  const containers = useQuery({
    queryKey: ['containers', project, 'names'],
    queryFn: () => read(api.GET('/containers', {
      params: { header: inProject(project), query: { limit: 100, sort: 'name' } },
    })),
  })

  return (
    <>
      <div className={css.pair}>
        <TextField label="Opens" type="datetime-local" value={draft.opensAt} onChange={(e) => set({ opensAt: e.target.value })} />
        <TextField label="Closes" type="datetime-local" value={draft.closesAt} onChange={(e) => set({ closesAt: e.target.value })} />
      </div>
      <TextField label="Most responses" type="number" min={1} value={draft.maxResponses} placeholder="no limit"
        onChange={(e) => set({ maxResponses: e.target.value })} />
      <SelectField label="Container of uploaded files" value={draft.container} hint="Needed by fields of the type file."
        onChange={(e) => set({ container: e.target.value })}>
        <option value="">none</option>
        {draft.container !== '' && containers.data === undefined && <option value={draft.container}>{draft.container}</option>}
        {containers.data?.content.map((c) => <option key={c.uuid} value={c.uuid}>{c.name}</option>)}
      </SelectField>
      <TextField label="Honeypot" value={draft.honeypot} placeholder="website"
        hint="Name of a hidden input. Programs fill it in, and their responses are discarded."
        onChange={(e) => set({ honeypot: e.target.value })} />
    </>
  )
}

function Afterwards({ draft, set, unconfirmed }: Part & { unconfirmed: string[] }) {
  return (
    <>
      <TextArea label="Message" maxLength={1000} value={draft.successMessage} hint="Shown after a response."
        onChange={(e) => set({ successMessage: e.target.value })} />
      <TextField label="Redirect to" type="url" value={draft.redirectURL} placeholder="https://example.com/thanks"
        hint="Instead of the message." onChange={(e) => set({ redirectURL: e.target.value })} />
      <TextArea label="Notify by mail" rows={2} value={draft.notifyEmails} onChange={(e) => set({ notifyEmails: e.target.value })}
        hint={unconfirmed.length === 0 ? 'Up to 10 addresses, one a line. Each has to confirm by a mailed link.'
          : `Not confirmed yet: ${unconfirmed.join(', ')}`} />
    </>
  )
}

function Appearance({ draft, set }: Part) {
  return (
    <>
      <TextField label="Color" value={draft.color} placeholder="#1f5fbf" pattern="#[0-9a-fA-F]{6}"
        hint="# and six hexadecimal digits." onChange={(e) => set({ color: e.target.value })} />
      <TextField label="Logo" value={draft.logo} placeholder="UUID of a file" spellCheck={false}
        hint="A picture among the project's files, at most 1 MiB. Its UUID is in the preview of the file."
        onChange={(e) => set({ logo: e.target.value.trim() })} />
      <TextArea label="Sites that may embed the page" rows={2} value={draft.embedOrigins} placeholder="https://example.com"
        hint="Origins, one a line." onChange={(e) => set({ embedOrigins: e.target.value })} />
    </>
  )
}

function DeleteForm({ project, form }: { project: string; form: Schemas['FullForm'] }) {
  const navigate = useNavigate()
  const [asks, setAsks] = useState(false)

  async function remove() {
    await read(api.DELETE('/forms/{formUUID}', { params: { path: { formUUID: form.uuid }, query: { force: 'true' } } }))
    toast(`Form ${form.name} is deleted.`)
    await navigate({ to: `/projects/${project}/forms` })
    await queries.invalidateQueries({ queryKey: ['forms', project] })
  }

  return (
    <Card title="Delete form" lead="Its fields, responses and uploaded files go with it.">
      <Row>
        <Button needs="deleteForm" look="danger" onClick={() => setAsks(true)}>Delete form</Button>
      </Row>
      {asks && (
        <Confirm title="Delete this form" open onClose={() => setAsks(false)} action="Delete form" name={form.name} onSubmit={remove}>
          <p>
            {form.fields.length} fields, {form.totalResponses.toLocaleString()} responses and their files are lost, and the link
            stops working. This cannot be undone, except by a restore of a backup.
          </p>
        </Confirm>
      )}
    </Card>
  )
}
