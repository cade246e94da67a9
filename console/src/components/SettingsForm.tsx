import { useState, type FormEvent } from 'react'
import { texts } from '#texts/components'
import { ApiError } from '../api/client'
import { Button } from './Button'
import { CheckField, SelectField, TextArea, TextField } from './Field'
import { Card } from './Page'
import { useRefusal, type Operation } from './rights'
import { FailureNote } from './States'
import { toast } from './Toast'
import { changes, shown, type Draft, type Spec, type Values } from './specs'
import css from './SettingsForm.module.css'

/** A card with settings. It saves the changed ones, and keeps what was typed if that fails. */
export function SettingsForm({ title, lead, specs, values, secrets = [], disabled: closed = false, needs, save }: {
  title: string
  lead?: string
  specs: Spec[]
  values: Values
  secrets?: string[] // names of secrets that are set
  disabled?: boolean
  needs?: Operation // to save
  save: (changed: Values) => Promise<unknown>
}) {
  const refusal = useRefusal(needs)
  const disabled = closed || refusal !== undefined
  const [draft, setDraft] = useState<Draft>({})
  const [busy, setBusy] = useState(false)
  const [failure, setFailure] = useState<unknown>(null)
  const dirty = specs.some((s) => draft[s.name] !== undefined && draft[s.name] !== shown(s, values[s.name]))

  async function submit(e: FormEvent) {
    e.preventDefault()
    setBusy(true)
    setFailure(null)

    try {
      await save(changes(specs, draft, values))
      setDraft({})
      toast(texts.titleSaved(title))
    } catch (error) {
      setFailure(error)
    } finally {
      setBusy(false)
    }
  }

  return (
    <Card title={title} lead={refusal ?? lead}>
      <form className={css.form} onSubmit={(e) => void submit(e)}>
        <div className={css.fields}>
          {specs.map((spec) => (
            <Control key={spec.name} spec={spec} disabled={disabled} isSet={secrets.includes(spec.name)}
              value={draft[spec.name] ?? shown(spec, values[spec.name])}
              error={faultOf(failure, spec.name)}
              onValue={(value) => setDraft((former) => ({ ...former, [spec.name]: value }))} />
          ))}
        </div>
        {failure !== null && <FailureNote error={failure} />}
        {!disabled && (
          <footer className={css.foot}>
            <Button type="submit" look="primary" busy={busy} disabled={!dirty}>{texts.saveChanges}</Button>
            {dirty && <Button onClick={() => setDraft({})}>{texts.discardChanges}</Button>}
          </footer>
        )}
      </form>
    </Card>
  )
}

/** Returns the failure's text for a setting, also for a member of an object, such as smtp.url. */
function faultOf(failure: unknown, name: string): string | undefined {
  if (!(failure instanceof ApiError)) return undefined

  return failure.fields.find((f) => f.field === name || f.field.endsWith(`.${name}`))?.message
}

function Control({ spec, value, onValue, error, isSet, disabled }: {
  spec: Spec
  value: string | boolean
  onValue: (value: string | boolean) => void
  error: string | undefined
  isSet: boolean
  disabled: boolean
}) {
  const { label, hint, kind } = spec
  const common = { label, error, disabled, ...(hint !== undefined && { hint }) }
  const text = String(value)

  switch (kind) {
    case 'check':
      return (
        <CheckField label={label} hint={error ?? hint} disabled={disabled} checked={value === true}
          onChange={(e) => onValue(e.target.checked)} />
      )
    case 'choice':
      return (
        <SelectField {...common} value={text} onChange={(e) => onValue(e.target.value)}>
          {spec.choices?.map((c) => <option key={c.value} value={c.value}>{c.text}</option>)}
        </SelectField>
      )
    case 'list':
    case 'area':
      return <TextArea {...common} rows={4} spellCheck={false} value={text} onChange={(e) => onValue(e.target.value)} />
    case 'secret':
      return (
        <TextField {...common} type="password" autoComplete="off" value={text}
          placeholder={isSet ? texts.setTypeANewOne : texts.notSet} onChange={(e) => onValue(e.target.value)} />
      )
    case 'number':
      return <TextField {...common} type="number" step={1} value={text} onChange={(e) => onValue(e.target.value)} />
    case 'size':
    case 'text':
      return <TextField {...common} value={text} onChange={(e) => onValue(e.target.value)} />
  }
}
