import { useId } from 'react'
import { texts } from '#texts/rows'
import { Button } from '../../components/Button'
import type { Draft } from './edit'
import type { Column } from './types'
import { ValueControl } from './ValueControl'
import css from './RowFields.module.css'

/** Editors for all columns of a row, one below the other. */
export function RowFields({ project, columns, drafts, errors, onChange, inserts, readOnly = false, onPeek }: {
  project: string
  columns: Column[]
  drafts: Record<string, Draft>
  errors: Record<string, string>
  onChange: (column: string, draft: Draft) => void
  inserts: boolean // a new row: every column can be left to its default
  readOnly?: boolean
  onPeek?: (column: Column, value: string) => void
}) {
  return (
    <div className={css.fields}>
      {columns.map((c) => (
        <OneField key={c.name} project={project} column={c} draft={drafts[c.name] ?? { mode: 'default', text: '' }}
          error={errors[c.name]} onChange={(draft) => onChange(c.name, draft)} inserts={inserts} readOnly={readOnly}
          {...(onPeek && { onPeek })} />
      ))}
    </div>
  )
}

function OneField({ project, column, draft, error, onChange, inserts, readOnly, onPeek }: {
  project: string
  column: Column
  draft: Draft
  error: string | undefined
  onChange: (draft: Draft) => void
  inserts: boolean
  readOnly: boolean
  onPeek?: (column: Column, value: string) => void
}) {
  const id = useId()
  const required = inserts && column.notNull && column.defaultValue === '' && !column.primary
  const canDefault = inserts || column.defaultValue !== ''

  return (
    <fieldset className={css.field} disabled={readOnly}>
      <legend className={css.legend}>
        <span className={css.name}>{column.name}</span> <span className={css.type}>{column.type}</span>
        {required && <span className={css.required}>{texts.required}</span>}
      </legend>
      <ValueControl project={project} column={column} draft={draft} label={column.name} invalid={error !== undefined}
        describedBy={error === undefined ? undefined : id} onChange={onChange} />
      {error !== undefined && <p id={id} className={css.error} role="alert">{error}</p>}
      {column.comment !== '' && <p className={css.type}>{column.comment}</p>}
      <div className={css.actions}>
        {!readOnly && !column.notNull && draft.mode !== 'null' && (
          <Button look="quiet" onClick={() => onChange({ mode: 'null', text: '' })}>{texts.setNull}</Button>
        )}
        {!readOnly && canDefault && draft.mode !== 'default' && (
          <Button look="quiet" onClick={() => onChange({ mode: 'default', text: '' })}>{texts.useDefault}</Button>
        )}
        {!readOnly && column.kind === 'text' && draft.mode !== 'value' && (
          <Button look="quiet" onClick={() => onChange({ mode: 'value', text: '' })}>{texts.setEmptyText}</Button>
        )}
        {column.reference !== null && draft.mode === 'value' && draft.text !== '' && onPeek && (
          <Button look="quiet" onClick={() => onPeek(column, draft.text)}>{texts.showRowInTable(column.reference.table)}</Button>
        )}
      </div>
    </fieldset>
  )
}
