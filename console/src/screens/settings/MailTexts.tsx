import { useState } from 'react'
import type { Schemas } from '../../api/client'
import { Badge } from '../../components/Bits'
import { Button } from '../../components/Button'
import { Confirm, FormDialog } from '../../components/Dialog'
import { SelectField, TextArea, TextField } from '../../components/Field'
import { Card } from '../../components/Page'
import { Table } from '../../components/Table'
import type { SubjectProps } from './AuthSettings'
import { mailKinds } from './authSpecs'
import { MailPreview } from './MailPreview'

type MailText = Schemas['MailText']

interface Edited {
  kind: string // with a language: recovery.de
  isNew: boolean
}

/** Texts of the mails to users, by kind and language. */
export function MailTexts({ settings, update }: SubjectProps) {
  const [edited, setEdited] = useState<Edited>()
  const [reset, setReset] = useState<string>()
  const own = Object.keys(settings.mails)
  const rows = [...new Set<string>([...mailKinds, ...own])].sort()

  return (
    <Card title="Mail texts" lead="A kind with a language, such as recovery.de, is for users whose metadata have the language."
      actions={<Button onClick={() => setEdited({ kind: 'confirmation', isNew: true })}>Add language</Button>}>
      <Table label="Mail texts" rows={rows} keyOf={(kind) => kind} columns={[
        { title: 'Kind', cell: (kind) => kind },
        { title: 'Text', cell: (kind) => own.includes(kind) ? <Badge tone="success">own</Badge> : <Badge>default</Badge> },
        { title: 'Subject', cell: (kind) => settings.mails[kind]?.subject, narrow: true },
        { title: '', align: 'right', cell: (kind) => (
          <>
            <Button aria-label={`Edit ${kind}`} onClick={() => setEdited({ kind, isNew: false })}>Edit</Button>{' '}
            {own.includes(kind) && (
              <Button look="danger" aria-label={`Reset ${kind}`} onClick={() => setReset(kind)}>Reset</Button>
            )}
          </>
        ) },
      ]} />
      {edited && <MailForm edited={edited} settings={settings} update={update} onClose={() => setEdited(undefined)} />}
      {reset !== undefined && (
        <Confirm title="Reset mail text" open action="Reset text" onClose={() => setReset(undefined)} onSubmit={() => {
          const { [reset]: _, ...others } = settings.mails
          return update({ mails: others })
        }}>
          Your text of <b>{reset}</b> is lost. Mails of this kind have the default text again.
        </Confirm>
      )}
    </Card>
  )
}

const variables = '{{ .ConfirmationURL }}, {{ .Token }}, {{ .TokenHash }}, {{ .SiteURL }}, {{ .RedirectTo }}, ' +
  '{{ .Email }}, {{ .NewEmail }}, {{ .Data.name }}'

function MailForm({ edited, settings, update, onClose }: SubjectProps & { edited: Edited; onClose: () => void }) {
  const [kind, setKind] = useState(edited.kind)
  const [language, setLanguage] = useState('')
  const [mail, setMail] = useState<MailText>(edited.isNew ? {} : settings.mails[edited.kind] ?? {})
  const name = edited.isNew ? `${kind}.${language}` : edited.kind

  return (
    <FormDialog title={edited.isNew ? 'New language' : `Mail ${edited.kind}`} open wide onClose={onClose} action="Save text"
      onSubmit={() => update({ mails: { ...settings.mails, [name]: withoutEmpty(mail) } })}>
      {edited.isNew && (
        <>
          <SelectField label="Kind" value={kind} onChange={(e) => setKind(e.target.value)}>
            {mailKinds.map((k) => <option key={k} value={k}>{k}</option>)}
          </SelectField>
          <TextField label="Language" required value={language} hint="Such as de or pt-BR."
            onChange={(e) => setLanguage(e.target.value.trim())} />
        </>
      )}
      <TextField label="Subject" maxLength={200} value={mail.subject ?? ''} placeholder="Default subject"
        onChange={(e) => setMail({ ...mail, subject: e.target.value })} />
      <TextArea label="Text" rows={8} maxLength={20000} value={mail.text ?? ''} placeholder="Default text"
        hint={`Variables: ${variables}`} onChange={(e) => setMail({ ...mail, text: e.target.value })} />
      <TextArea label="HTML" rows={8} maxLength={20000} spellCheck={false} value={mail.html ?? ''} placeholder="Default HTML"
        onChange={(e) => setMail({ ...mail, html: e.target.value })} />
      <MailPreview draft={draftOf(name, mail)} />
    </FormDialog>
  )
}

/** Returns what the API previews: the typed text, or the stored one while nothing is typed. */
function draftOf(name: string, mail: MailText): Schemas['MailDraft'] {
  const [kind = '', language = ''] = name.split(/\.(.*)/)
  const text = withoutEmpty(mail)

  return {
    kind: kind as Schemas['MailDraft']['kind'],
    ...(language !== '' && { language }),
    ...(Object.keys(text).length > 0 && { text }),
  }
}

function withoutEmpty(mail: MailText): MailText {
  return Object.fromEntries(Object.entries(mail).filter(([, value]) => value !== ''))
}
