import { useId, useMemo, useState } from 'react'
import { texts } from '#texts/structure'
import { api } from '../../api/client'
import { change } from '../../components/change'
import { FormDialog } from '../../components/Dialog'
import { CheckField, SelectField, TextArea, TextField } from '../../components/Field'
import { addConstraint, type ConstraintDraft } from './ddl'
import { SQLPreview } from './SQLPreview'
import { onTable, reload, useColumns, useTableNames, type TableRef } from './table'
import css from './Structure.module.css'

const kinds: Record<ConstraintDraft['type'], string> = {
  check: texts.checkAConditionOnEach, unique: texts.uniqueNoTwoRowsWith,
  foreign: texts.foreignKeyARowOf, primary: texts.primaryKeyIdentifiesARow,
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
    <FormDialog title={texts.addAConstraintToName(table.name)} open onClose={onClose} side action={texts.addConstraint}
      onSubmit={add} disabled={draft.type !== 'check' && draft.columns.length === 0}>
      <SelectField label={texts.kind} value={draft.type}
        onChange={(e) => set({ type: e.target.value as ConstraintDraft['type'] })}>
        {Object.entries(kinds).map(([kind, text]) => <option key={kind} value={kind}>{text}</option>)}
      </SelectField>
      {draft.type === 'check' ? (
        <TextArea label={texts.condition} required value={draft.expression} placeholder={texts.priceZero}
          hint={texts.oneSQLExpressionOnThe} onChange={(e) => set({ expression: e.target.value })} />
      ) : (
        <Chosen legend={texts.columns} all={columns} chosen={draft.columns} onChange={(next) => set({ columns: next })} />
      )}
      {draft.type === 'foreign' && <Reference project={table.project} draft={draft} set={set} />}
      {takesOldRows && (
        <CheckField label={texts.checkNewRowsOnlyFor} checked={draft.notValid}
          hint={texts.notValidNoScanUnder}
          onChange={(e) => set({ notValid: e.target.checked })} />
      )}
      {draft.type !== 'check' && (
        <div className={css.checks}>
          <CheckField label={texts.deferrable} checked={draft.deferrable}
            onChange={(e) => set({ deferrable: e.target.checked, initiallyDeferred: false })} />
          {draft.deferrable && (
            <CheckField label={texts.checkedAtCommit} checked={draft.initiallyDeferred}
              onChange={(e) => set({ initiallyDeferred: e.target.checked })} />
          )}
        </div>
      )}
      <TextField label={texts.name} value={draft.name} hint={texts.emptyTheDatabaseChoosesOne}
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
      <TextField label={texts.referencesTable} required list={list} autoComplete="off" value={draft.referenceTable}
        onChange={(e) => set({ referenceTable: e.target.value, referenceColumns: [] })} />
      <datalist id={list}>{tables.map((t) => <option key={t} value={t} />)}</datalist>
      {columns.length > 0 && (
        <Chosen legend={texts.referencedColumns} all={columns} chosen={draft.referenceColumns}
          onChange={(next) => set({ referenceColumns: next })} />
      )}
      <div className={css.pair}>
        <SelectField label={texts.whenTheRowIsDeleted} value={draft.onDelete}
          onChange={(e) => set({ onDelete: e.target.value })}>
          {actions.map((a) => <option key={a}>{a}</option>)}
        </SelectField>
        <SelectField label={texts.whenItsKeyChanges} value={draft.onUpdate}
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
