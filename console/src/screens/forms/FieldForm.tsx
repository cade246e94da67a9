import { useState } from 'react'
import { texts } from '#texts/forms'
import { api, read } from '../../api/client'
import { FormDialog } from '../../components/Dialog'
import { CheckField, SelectField, TextArea, TextField } from '../../components/Field'
import { queries } from '../../queries'
import { bodyOf, draftOf, fieldTypes, takes, type FieldDraft, type FieldType, type FormField } from './rules'
import css from './Form.module.css'

/** Adds a field to a form, or changes one. */
export function FieldForm({ project, form, field, name, onClose }: {
  project: string
  form: string
  field?: FormField
  name?: string | null
  onClose: () => void
}) {
  const [key] = useState(() => crypto.randomUUID())
  const [draft, setDraft] = useState(() => draftOf(field, name))
  const set = (patch: Partial<FieldDraft>) => setDraft((former) => ({ ...former, ...patch }))

  async function save() {
    const body = bodyOf(draft)
    await (field === undefined
      ? read(api.POST('/forms/{formUUID}/fields', {
        params: { path: { formUUID: form } }, body, headers: { 'Idempotency-Key': key },
      }))
      : read(api.PUT('/forms/{formUUID}/fields/{fieldUUID}', {
        params: { path: { formUUID: form, fieldUUID: field.uuid } }, body,
      })))
    await queries.invalidateQueries({ queryKey: ['forms', project] })
  }

  return (
    <FormDialog title={field === undefined ? texts.addField : texts.editField} open onClose={onClose} side
      action={field === undefined ? texts.addField : texts.saveField} onSubmit={save}>
      <TextField label={texts.question} required maxLength={100} value={draft.label} autoFocus
        onChange={(e) => set({ label: e.target.value })} />
      <SelectField label={texts.type} value={draft.type} onChange={(e) => set({ type: e.target.value as FieldType })}>
        {Object.entries(fieldTypes).map(([type, text]) => <option key={type} value={type}>{text}</option>)}
      </SelectField>
      <CheckField label={texts.anAnswerIsRequired} checked={draft.required} onChange={(e) => set({ required: e.target.checked })} />
      <TextArea label={texts.explanation} maxLength={500} rows={2} value={draft.description}
        onChange={(e) => set({ description: e.target.value })} />
      <Rules draft={draft} set={set} />
      <TextField label={texts.nameInAnswers} value={draft.name} placeholder={texts.genre}
        hint={texts.forHTMLFormsAndScripts} onChange={(e) => set({ name: e.target.value })} />
    </FormDialog>
  )
}

function Rules({ draft, set }: { draft: FieldDraft; set: (patch: Partial<FieldDraft>) => void }) {
  const input = (label: string, member: keyof FieldDraft, type: 'text' | 'number', hint?: string) => (
    <TextField label={label} type={type} value={String(draft[member])} {...(type === 'number' && { step: 1 })}
      {...(hint !== undefined && { hint })} onChange={(e) => set({ [member]: e.target.value })} />
  )

  return (
    <>
      {takes(draft.type, 'options') && (
        <TextArea label={texts.options} required value={draft.options} hint={texts.oneALine} onChange={(e) => set({ options: e.target.value })} />
      )}
      {takes(draft.type, 'length') && (
        <div className={css.pair}>
          {input(texts.fewestCharacters, 'minLength', 'number')}
          {input(texts.mostCharacters, 'maxLength', 'number')}
        </div>
      )}
      {takes(draft.type, 'range') && (
        <div className={css.pair}>
          {input(texts.leastValue, 'minValue', 'number')}
          {input(texts.greatestValue, 'maxValue', 'number')}
        </div>
      )}
      {takes(draft.type, 'dates') && (
        <>
          <div className={css.pair}>
            {input(texts.earliest, 'startDate', 'text', texts.isoThe8601SuchAsThe2026)}
            {input(texts.latest, 'endDate', 'text')}
          </div>
          {input(texts.format, 'dateFormat', 'text', texts.suchAsDDMMYYYY)}
        </>
      )}
      {takes(draft.type, 'pattern') && input(texts.pattern, 'pattern', 'text', texts.rE2ExpressionThatMatchesThe)}
      {takes(draft.type, 'default') && input(texts.default, 'defaultValue', 'text')}
    </>
  )
}
