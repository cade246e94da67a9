import { useState } from 'react'
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
    <FormDialog title={field === undefined ? 'Add field' : 'Edit field'} open onClose={onClose} side
      action={field === undefined ? 'Add field' : 'Save field'} onSubmit={save}>
      <TextField label="Question" required maxLength={100} value={draft.label} autoFocus
        onChange={(e) => set({ label: e.target.value })} />
      <SelectField label="Type" value={draft.type} onChange={(e) => set({ type: e.target.value as FieldType })}>
        {Object.entries(fieldTypes).map(([type, text]) => <option key={type} value={type}>{text}</option>)}
      </SelectField>
      <CheckField label="An answer is required" checked={draft.required} onChange={(e) => set({ required: e.target.checked })} />
      <TextArea label="Explanation" maxLength={500} rows={2} value={draft.description}
        onChange={(e) => set({ description: e.target.value })} />
      <Rules draft={draft} set={set} />
      <TextField label="Name in answers" value={draft.name} placeholder="genre"
        hint="For HTML forms and scripts: a letter, then letters, digits, _ or -." onChange={(e) => set({ name: e.target.value })} />
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
        <TextArea label="Options" required value={draft.options} hint="One a line." onChange={(e) => set({ options: e.target.value })} />
      )}
      {takes(draft.type, 'length') && (
        <div className={css.pair}>
          {input('Fewest characters', 'minLength', 'number')}
          {input('Most characters', 'maxLength', 'number')}
        </div>
      )}
      {takes(draft.type, 'range') && (
        <div className={css.pair}>
          {input('Least value', 'minValue', 'number')}
          {input('Greatest value', 'maxValue', 'number')}
        </div>
      )}
      {takes(draft.type, 'dates') && (
        <>
          <div className={css.pair}>
            {input('Earliest', 'startDate', 'text', 'ISO 8601, such as 2026-01-31.')}
            {input('Latest', 'endDate', 'text')}
          </div>
          {input('Format', 'dateFormat', 'text', 'Such as DD.MM.YYYY or HH:mm. Empty: ISO 8601.')}
        </>
      )}
      {takes(draft.type, 'pattern') && input('Pattern', 'pattern', 'text', 'RE2 expression that matches the whole answer.')}
      {takes(draft.type, 'default') && input('Default', 'defaultValue', 'text')}
    </>
  )
}
