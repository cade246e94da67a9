import { useState } from 'react'
import { texts } from '#texts/settings'
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
    <Card title={texts.mailTexts} lead={texts.aKindWithALanguage}
      actions={<Button onClick={() => setEdited({ kind: 'confirmation', isNew: true })}>{texts.addLanguage}</Button>}>
      <Table label={texts.mailTexts} rows={rows} keyOf={(kind) => kind} columns={[
        { title: texts.kind, cell: (kind) => kind },
        { title: texts.text, cell: (kind) => own.includes(kind) ? <Badge tone="success">{texts.own}</Badge> : <Badge>{texts.default}</Badge> },
        { title: texts.subject, cell: (kind) => settings.mails[kind]?.subject, narrow: true },
        { title: '', align: 'right', cell: (kind) => (
          <>
            <Button aria-label={texts.editKind(kind)} onClick={() => setEdited({ kind, isNew: false })}>{texts.edit}</Button>{' '}
            {own.includes(kind) && (
              <Button look="danger" aria-label={texts.resetKind(kind)} onClick={() => setReset(kind)}>{texts.reset}</Button>
            )}
          </>
        ) },
      ]} />
      {edited && <MailForm edited={edited} settings={settings} update={update} onClose={() => setEdited(undefined)} />}
      {reset !== undefined && (
        <Confirm title={texts.resetMailText} open action={texts.resetText} onClose={() => setReset(undefined)} onSubmit={() => {
          const { [reset]: _, ...others } = settings.mails
          return update({ mails: others })
        }}>
          {texts.yourTextOfIsLost(<b>{reset}</b>)}
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
    <FormDialog title={edited.isNew ? texts.newLanguage : texts.mailKind(edited.kind)} open wide onClose={onClose} action={texts.saveText}
      onSubmit={() => update({ mails: { ...settings.mails, [name]: withoutEmpty(mail) } })}>
      {edited.isNew && (
        <>
          <SelectField label={texts.kind} value={kind} onChange={(e) => setKind(e.target.value)}>
            {mailKinds.map((k) => <option key={k} value={k}>{k}</option>)}
          </SelectField>
          <TextField label={texts.language} required value={language} hint={texts.suchAsDeOrPt}
            onChange={(e) => setLanguage(e.target.value.trim())} />
        </>
      )}
      <TextField label={texts.subject} maxLength={200} value={mail.subject ?? ''} placeholder={texts.defaultSubject}
        onChange={(e) => setMail({ ...mail, subject: e.target.value })} />
      <TextArea label={texts.text} rows={8} maxLength={20000} value={mail.text ?? ''} placeholder={texts.defaultText}
        hint={texts.variables(variables)} onChange={(e) => setMail({ ...mail, text: e.target.value })} />
      <TextArea label={texts.html} rows={8} maxLength={20000} spellCheck={false} value={mail.html ?? ''} placeholder={texts.defaultHTML}
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
