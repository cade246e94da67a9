import { useState, type FormEvent } from 'react'
import { useNavigate } from '@tanstack/react-router'
import { texts } from '#texts/forms'
import { api, read, type Schemas } from '../../api/client'
import { Button } from '../../components/Button'
import { useContainers } from '../../components/choices'
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
      toast(texts.theFormIsSaved)
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
          <Card title={texts.form}><Basics {...part} /></Card>
          <Card title={texts.limits}><Limits {...part} project={project} /></Card>
          <Card title={texts.afterAResponse}><Afterwards {...part} unconfirmed={form.unconfirmedEmails} /></Card>
          <Card title={texts.page}><Appearance {...part} /></Card>
          {failure !== null && <FailureNote error={failure} />}
          <Row>
            <Button needs="updateForm" type="submit" look="primary" busy={busy} disabled={Object.keys(patch).length === 0}>
              {texts.saveSettings}
            </Button>
            <Button disabled={Object.keys(patch).length === 0} onClick={() => setDraft(before)}>{texts.discardChanges}</Button>
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
      <TextField label={texts.name} required maxLength={100} value={draft.name} onChange={(e) => set({ name: e.target.value })} />
      <TextArea label={texts.description} maxLength={500} value={draft.description} onChange={(e) => set({ description: e.target.value })} />
      <SelectField label={texts.state} value={draft.state} hint={texts.onlyAnOpenFormAccepts}
        onChange={(e) => set({ state: e.target.value })}>
        <option value="draft">{texts.draft}</option>
        <option value="open">{texts.open}</option>
        <option value="closed">{texts.closed}</option>
      </SelectField>
    </>
  )
}

function Limits({ draft, set, project }: Part & { project: string }) {
  const containers = useContainers(project)

  return (
    <>
      <div className={css.pair}>
        <TextField label={texts.opens} type="datetime-local" value={draft.opensAt} onChange={(e) => set({ opensAt: e.target.value })} />
        <TextField label={texts.closes} type="datetime-local" value={draft.closesAt} onChange={(e) => set({ closesAt: e.target.value })} />
      </div>
      <TextField label={texts.mostResponses} type="number" min={1} value={draft.maxResponses} placeholder={texts.noLimit}
        onChange={(e) => set({ maxResponses: e.target.value })} />
      <SelectField label={texts.containerOfUploadedFiles} value={draft.container} hint={texts.neededByFieldsOfThe}
        onChange={(e) => set({ container: e.target.value })}>
        <option value="">{texts.none}</option>
        {draft.container !== '' && containers.data === undefined && <option value={draft.container}>{draft.container}</option>}
        {containers.data?.map((c) => <option key={c.uuid} value={c.uuid}>{c.name}</option>)}
      </SelectField>
      <TextField label={texts.honeypot} value={draft.honeypot} placeholder={texts.website}
        hint={texts.nameOfAHiddenInput}
        onChange={(e) => set({ honeypot: e.target.value })} />
    </>
  )
}

function Afterwards({ draft, set, unconfirmed }: Part & { unconfirmed: string[] }) {
  return (
    <>
      <TextArea label={texts.message} maxLength={1000} value={draft.successMessage} hint={texts.shownAfterAResponse}
        onChange={(e) => set({ successMessage: e.target.value })} />
      <TextField label={texts.redirectTo} type="url" value={draft.redirectURL} placeholder={texts.httpsExampleComThanks}
        hint={texts.insteadOfTheMessage} onChange={(e) => set({ redirectURL: e.target.value })} />
      <TextArea label={texts.notifyByMail} rows={2} value={draft.notifyEmails} onChange={(e) => set({ notifyEmails: e.target.value })}
        hint={unconfirmed.length === 0 ? texts.upToTenAddressesOne
          : texts.notConfirmedYetUnconfirmed(unconfirmed.join(', '))} />
    </>
  )
}

function Appearance({ draft, set }: Part) {
  return (
    <>
      <TextField label={texts.color} value={draft.color} placeholder={texts.the1f5fbf} pattern="#[0-9a-fA-F]{6}"
        hint={texts.andSixHexadecimalDigits} onChange={(e) => set({ color: e.target.value })} />
      <TextField label={texts.logo} value={draft.logo} placeholder={texts.uuidOfAFile} spellCheck={false}
        hint={texts.aPictureAmongTheProjects}
        onChange={(e) => set({ logo: e.target.value.trim() })} />
      <TextArea label={texts.sitesThatMayEmbedThe} rows={2} value={draft.embedOrigins} placeholder={texts.httpsExampleCom}
        hint={texts.originsOneALine} onChange={(e) => set({ embedOrigins: e.target.value })} />
    </>
  )
}

function DeleteForm({ project, form }: { project: string; form: Schemas['FullForm'] }) {
  const navigate = useNavigate()
  const [asks, setAsks] = useState(false)

  async function remove() {
    await read(api.DELETE('/forms/{formUUID}', { params: { path: { formUUID: form.uuid }, query: { force: 'true' } } }))
    toast(texts.formNameIsDeleted(form.name))
    await navigate({ to: `/projects/${project}/forms` })
    await queries.invalidateQueries({ queryKey: ['forms', project] })
  }

  return (
    <Card title={texts.deleteForm} lead={texts.itsFieldsResponsesAndUploaded}>
      <Row>
        <Button needs="deleteForm" look="danger" onClick={() => setAsks(true)}>{texts.deleteForm}</Button>
      </Row>
      {asks && (
        <Confirm title={texts.deleteThisForm} open onClose={() => setAsks(false)} action={texts.deleteForm} name={form.name} onSubmit={remove}>
          <p>
            {texts.fieldsResponsesAndTheirFiles(form.fields.length, form.totalResponses.toLocaleString())}
          </p>
        </Confirm>
      )}
    </Card>
  )
}
