import { useId, useMemo, useState } from 'react'
import { api } from '../../api/client'
import { change } from '../../components/change'
import { FormDialog } from '../../components/Dialog'
import { CheckField, SelectField, TextArea, TextField } from '../../components/Field'
import { addConstraint, type ConstraintDraft } from './ddl'
import { SQLPreview } from './SQLPreview'
import { onTable, reload, useColumns, useTableNames, type TableRef } from './table'
import css from './Structure.module.css'

const kinds: Record<ConstraintDraft['type'], string> = {
  check: 'Check: a condition on each row', unique: 'Unique: no two rows with equal values',
  foreign: 'Foreign key: a row of another table', primary: 'Primary key: identifies a row',
}
const actions = ['no action', 'restrict', 'cascade', 'set null', 'set default'] as const
type Action = (typeof actions)[number]

const empty: ConstraintDraft = {
  type: 'check', name: '', columns: [], expression: '', referenceTable: '', referenceColumns: [],
  onDelete: 'no action', onUpdate: 'no action', notValid: false, deferrable: false, initiallyDeferred: false,
}

interface Part {
  draft: ConstraintDraft
  set: (part: Partial<ConstraintDraft>) => void
}

export function ConstraintForm({ table, onClose }: { table: TableRef; onClose: () => void }) {
  const [draft, setDraft] = useState(empty)
  const key = useMemo(() => crypto.randomUUID(), [])
  const columns = useColumns(table).data?.content.map((c) => c.name) ?? []
  const set = (part: Partial<ConstraintDraft>) => setDraft({ ...draft, ...part })
  const takesOldRows = draft.type === 'check' || draft.type === 'foreign'

  async function add() {
    await change(api.POST('/tables/{tableUUID}/constraints', {
      params: onTable(table), headers: { 'Idempotency-Key': key }, body: bodyOf(draft),
    }))
    await reload(table.project)
  }

  return (
    <FormDialog title={`Add a constraint to ${table.name}`} open onClose={onClose} side action="Add constraint"
      onSubmit={add} disabled={draft.type !== 'check' && draft.columns.length === 0}>
      <SelectField label="Kind" value={draft.type}
        onChange={(e) => set({ type: e.target.value as ConstraintDraft['type'] })}>
        {Object.entries(kinds).map(([kind, text]) => <option key={kind} value={kind}>{text}</option>)}
      </SelectField>
      {draft.type === 'check' ? (
        <TextArea label="Condition" required value={draft.expression} placeholder="price >= 0"
          hint="One SQL expression on the columns of a row." onChange={(e) => set({ expression: e.target.value })} />
      ) : (
        <Chosen legend="Columns" all={columns} chosen={draft.columns} onChange={(next) => set({ columns: next })} />
      )}
      {draft.type === 'foreign' && <Reference project={table.project} draft={draft} set={set} />}
      {takesOldRows && (
        <CheckField label="Check new rows only for now" checked={draft.notValid}
          hint="Not valid: no scan under a lock. Validate it later to check the old rows."
          onChange={(e) => set({ notValid: e.target.checked })} />
      )}
      {draft.type !== 'check' && (
        <div className={css.checks}>
          <CheckField label="Deferrable" checked={draft.deferrable}
            onChange={(e) => set({ deferrable: e.target.checked, initiallyDeferred: false })} />
          {draft.deferrable && (
            <CheckField label="Checked at commit" checked={draft.initiallyDeferred}
              onChange={(e) => set({ initiallyDeferred: e.target.checked })} />
          )}
        </div>
      )}
      <TextField label="Name" value={draft.name} hint="Empty: the database chooses one."
        onChange={(e) => set({ name: e.target.value })} />
      <SQLPreview change={addConstraint(table.name, draft)} />
    </FormDialog>
  )
}

/** Columns to choose, kept in the order in which they were chosen. */
function Chosen({ legend, all, chosen, onChange }: {
  legend: string
  all: string[]
  chosen: string[]
  onChange: (chosen: string[]) => void
}) {
  return (
    <fieldset className={css.group}>
      <legend>{legend}{chosen.length > 0 && `: ${chosen.join(', ')}`}</legend>
      <div className={css.checks}>
        {all.map((column) => (
          <CheckField key={column} label={column} checked={chosen.includes(column)}
            onChange={(e) => onChange(e.target.checked ? [...chosen, column] : chosen.filter((c) => c !== column))} />
        ))}
      </div>
    </fieldset>
  )
}

function Reference({ project, draft, set }: Part & { project: string }) {
  const list = useId()
  const tables = useTableNames(project)
  const known = tables.includes(draft.referenceTable) ? draft.referenceTable : ''
  const columns = useColumns({ project, uuid: known }).data?.content.map((c) => c.name) ?? []

  return (
    <>
      <TextField label="References table" required list={list} autoComplete="off" value={draft.referenceTable}
        onChange={(e) => set({ referenceTable: e.target.value, referenceColumns: [] })} />
      <datalist id={list}>{tables.map((t) => <option key={t} value={t} />)}</datalist>
      {columns.length > 0 && (
        <Chosen legend="Referenced columns" all={columns} chosen={draft.referenceColumns}
          onChange={(next) => set({ referenceColumns: next })} />
      )}
      <div className={css.pair}>
        <SelectField label="When the row is deleted" value={draft.onDelete}
          onChange={(e) => set({ onDelete: e.target.value })}>
          {actions.map((a) => <option key={a}>{a}</option>)}
        </SelectField>
        <SelectField label="When its key changes" value={draft.onUpdate}
          onChange={(e) => set({ onUpdate: e.target.value })}>
          {actions.map((a) => <option key={a}>{a}</option>)}
        </SelectField>
      </div>
    </>
  )
}

function bodyOf(draft: ConstraintDraft) {
  const { type, name, expression, columns, notValid, deferrable, initiallyDeferred } = draft
  return {
    type,
    ...(name !== '' && { name }),
    ...(type === 'check' ? { expression } : { columns }),
    ...(type === 'foreign' && {
      reference_table: draft.referenceTable, reference_columns: draft.referenceColumns,
      on_delete: draft.onDelete as Action, on_update: draft.onUpdate as Action,
    }),
    ...(notValid && (type === 'check' || type === 'foreign') && { not_valid: true }),
    ...(deferrable && type !== 'check' && { deferrable, initially_deferred: initiallyDeferred }),
  }
}
