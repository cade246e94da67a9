import { useId, type KeyboardEvent } from 'react'
import { texts } from '#texts/rows'
import { Button } from '../../components/Button'
import { inputClass } from '../../components/Field'
import type { Draft } from './edit'
import { ReferenceInput } from './ReferenceInput'
import type { Column } from './types'
import css from './ValueControl.module.css'

interface Props {
  project: string
  column: Column
  draft: Draft
  onChange: (draft: Draft) => void
  onKeyDown?: (e: KeyboardEvent) => void
  autoFocus?: boolean
  label: string
  invalid?: boolean
  describedBy?: string | undefined
}

/** An editor for one value, by the type of its column. */
export function ValueControl(props: Props) {
  const { column, draft, onChange, onKeyDown, autoFocus, label, invalid, describedBy, project } = props
  const slot = {
    'aria-label': label,
    'aria-invalid': invalid === true ? (true as const) : undefined,
    'aria-describedby': describedBy,
    autoFocus,
    onKeyDown,
  }
  const text = draft.mode === 'value' ? draft.text : ''
  const placeholder = { value: '', null: 'null', default: defaultText(column) }[draft.mode]
  const set = (next: string) => onChange({ mode: 'value', text: next })

  if (column.reference !== null) {
    return <ReferenceInput project={project} reference={column.reference} value={text} onChange={set} slot={slot}
      placeholder={placeholder} />
  }

  switch (column.kind) {
    case 'boolean': return <Choice {...slot} values={['true', 'false']} draft={draft} onChange={onChange} placeholder={placeholder} />
    case 'enum': return <Choice {...slot} values={column.values} draft={draft} onChange={onChange} placeholder={placeholder} />
    case 'json':
    case 'array':
      return <textarea {...slot} className={`${inputClass} ${css.code}`} value={text} placeholder={placeholder} spellCheck={false}
        onChange={(e) => set(e.target.value)} />
    case 'text':
    case 'other':
      return <textarea {...slot} rows={1} className={`${inputClass} ${css.text}`} value={text} placeholder={placeholder}
        onChange={(e) => set(e.target.value)} />
    case 'timestamp':
    case 'date':
    case 'time': return <Moment {...slot} kind={column.kind} value={text} placeholder={placeholder} onChange={set} />
    case 'number':
    case 'uuid':
    case 'bytea':
      return <input {...slot} className={`${inputClass} ${css.mono}`} inputMode={column.kind === 'number' ? 'decimal' : 'text'}
        value={text} placeholder={placeholder} spellCheck={false} autoComplete="off"
        onChange={(e) => set(e.target.value)} />
  }
}

function defaultText(column: Column): string {
  if (column.defaultValue !== '') return `default: ${column.defaultValue}`
  if (column.primary) return 'default'

  return column.notNull ? 'required' : 'null by default'
}

interface Slot {
  'aria-label': string
  'aria-invalid': true | undefined
  'aria-describedby': string | undefined
  autoFocus: boolean | undefined
  onKeyDown: ((e: KeyboardEvent) => void) | undefined
}

export type ControlSlot = Slot

function Choice({ values, draft, onChange, placeholder, ...slot }: Slot & {
  values: string[]
  draft: Draft
  onChange: (draft: Draft) => void
  placeholder: string
}) {
  return (
    <select {...slot} className={inputClass} value={draft.mode === 'value' ? draft.text : ''}
      onChange={(e) => onChange({ mode: 'value', text: e.target.value })}>
      {draft.mode !== 'value' && <option value="" disabled>{placeholder}</option>}
      {values.map((v) => <option key={v}>{v}</option>)}
    </select>
  )
}

/** Dates and times are text, as PostgreSQL reads zones, microseconds and infinity. */
function Moment({ kind, value, onChange, ...slot }: Slot & {
  kind: 'timestamp' | 'date' | 'time'
  value: string
  placeholder: string
  onChange: (text: string) => void
}) {
  const id = useId()
  const example = { timestamp: '2026-11-27 09:30:00+01', date: '2026-11-27', time: '09:30:00' }[kind]

  return (
    <div className={css.moment}>
      <input {...slot} id={id} className={`${inputClass} ${css.mono}`} value={value} spellCheck={false} autoComplete="off"
        placeholder={slot.placeholder || example} onChange={(e) => onChange(e.target.value)} />
      <Button onClick={() => onChange(now(kind))}>{texts.now}</Button>
    </div>
  )
}

function now(kind: 'timestamp' | 'date' | 'time'): string {
  const iso = new Date().toISOString()
  return { timestamp: iso, date: iso.slice(0, 10), time: iso.slice(11, 19) }[kind]
}
