import { useId, useMemo, useState } from 'react'
import { texts } from '#texts/structure'
import { api, inProject, type Schemas } from '../../api/client'
import { change, mentionsOf } from '../../components/change'
import { useEnums } from '../../components/choices'
import { FormDialog } from '../../components/Dialog'
import { CheckField, SelectField, TextField } from '../../components/Field'
import { toast } from '../../components/Toast'
import { addColumn, alterColumn, type ColumnDraft } from './ddl'
import { SQLPreview } from './SQLPreview'
import { onTable, reload, useColumns, useTableNames, type TableRef } from './table'
import css from './Structure.module.css'

const types = [
  'text', 'varchar(80)', 'bigint', 'integer', 'smallint', 'numeric(12,2)', 'double precision', 'boolean', 'uuid',
  'timestamptz', 'date', 'time', 'interval', 'jsonb', 'bytea', 'text[]', 'bigserial', 'inet',
]
const conversions = {
  cast: texts.byTheCastOfThe,
  trimmed: texts.withoutSurroundingBlanks,
  empty_as_null: texts.emptyTextAsNull,
  epoch_seconds: texts.secondsSinceThe1970AsA,
  epoch_milliseconds: texts.millisecondsSinceThe1970AsA,
  json: texts.textAsJSON,
  one_element: texts.asAnArrayOfOne,
} as const

type Conversion = keyof typeof conversions

const empty: ColumnDraft = {
  name: '', type: 'text', defaultValue: '', notNull: false, unique: false, primary: false, comment: '',
  referenceTable: '', referenceColumn: '', using: 'cast',
}

/** Adds a column, or changes one. */
export function ColumnForm({ table, column, comment = '', onClose }: {
  table: TableRef
  column?: Schemas['Column']
  comment?: string
  onClose: () => void
}) {
  const former: ColumnDraft = column === undefined ? empty : {
    ...empty, name: column.name, type: column.type, defaultValue: column.defaultValue, notNull: column.notNull,
    unique: column.unique, primary: column.primary, comment,
  }
  const [draft, setDraft] = useState(former)
  const key = useMemo(() => crypto.randomUUID(), [])
  const set = (part: Partial<ColumnDraft>) => setDraft({ ...draft, ...part })
  const preview = column === undefined ? addColumn(table.name, draft) : alterColumn(table.name, former, draft)

  async function save() {
    if (column === undefined) await create(table, draft, key)
    else await update(table, former, draft)
    await reload(table.project)
  }

  return (
    <FormDialog title={column === undefined ? texts.addAColumnToName(table.name) : texts.editName(column.name)} open
      onClose={onClose} side action={column === undefined ? texts.addColumn : texts.saveColumn} onSubmit={save}
      disabled={preview.sql === ''}>
      <Fields project={table.project} draft={draft} set={set} />
      {column !== undefined && draft.type !== former.type && (
        <SelectField label={texts.convertValues} value={draft.using} onChange={(e) => set({ using: e.target.value })}
          hint={texts.ifOneValueDoesNot}>
          {Object.entries(conversions).map(([name, text]) => <option key={name} value={name}>{text}</option>)}
        </SelectField>
      )}
      <div className={css.checks}>
        <CheckField label={texts.notNull} checked={draft.notNull || draft.primary} disabled={draft.primary}
          onChange={(e) => set({ notNull: e.target.checked })} />
        <CheckField label={texts.unique} checked={draft.unique || draft.primary} disabled={draft.primary}
          onChange={(e) => set({ unique: e.target.checked })} />
        {column === undefined && (
          <CheckField label={texts.primaryKey} checked={draft.primary} onChange={(e) => set({ primary: e.target.checked })} />
        )}
      </div>
      {column === undefined && <Reference table={table} draft={draft} set={set} />}
      <TextField label={texts.comment} value={draft.comment} onChange={(e) => set({ comment: e.target.value })} />
      <SQLPreview change={preview} />
    </FormDialog>
  )
}

interface Part {
  draft: ColumnDraft
  set: (part: Partial<ColumnDraft>) => void
}

function Fields({ project, draft, set }: Part & { project: string }) {
  const list = useId()
  const { data: enums } = useEnums(project)
  const own = enums?.map((e) => (e.schema === 'public' ? e.name : `${e.schema}.${e.name}`)) ?? []

  return (
    <>
      <TextField label={texts.name} required autoFocus autoComplete="off" value={draft.name}
        onChange={(e) => set({ name: e.target.value })} />
      <TextField label={texts.type} required list={list} autoComplete="off" value={draft.type}
        hint={texts.anyTypeOfTheDatabase}
        onChange={(e) => set({ type: e.target.value })} />
      <datalist id={list}>
        {[...own, ...types].map((t) => <option key={t} value={t} />)}
      </datalist>
      <TextField label={texts.default} autoComplete="off" value={draft.defaultValue}
        hint={texts.aValueSuchAsThe9}
        onChange={(e) => set({ defaultValue: e.target.value })} />
    </>
  )
}

function Reference({ table, draft, set }: Part & { table: TableRef }) {
  const list = useId()
  const tables = useTableNames(table.project)
  const known = tables.includes(draft.referenceTable) ? draft.referenceTable : ''
  const { data } = useColumns({ project: table.project, uuid: known })
  const keys = data?.content.filter((c) => c.unique) ?? []

  return (
    <div className={css.pair}>
      <TextField label={texts.referencesTable} list={list} autoComplete="off" value={draft.referenceTable}
        onChange={(e) => set({ referenceTable: e.target.value, referenceColumn: '' })} />
      <datalist id={list}>{tables.map((t) => <option key={t} value={t} />)}</datalist>
      <SelectField label={texts.referencesColumn} value={draft.referenceColumn} required={draft.referenceTable !== ''}
        disabled={known === ''} onChange={(e) => set({ referenceColumn: e.target.value })}>
        <option value="">{texts.choose}</option>
        {keys.map((c) => <option key={c.name} value={c.name}>{c.name} ({c.type})</option>)}
      </SelectField>
    </div>
  )
}

async function create(table: TableRef, draft: ColumnDraft, key: string): Promise<void> {
  await change(api.POST('/tables/{fullTableName}/columns', {
    params: { header: inProject(table.project), path: { fullTableName: table.uuid } },
    headers: { 'Idempotency-Key': key },
    body: {
      name: draft.name, type: draft.type, notNull: draft.notNull, unique: draft.unique, primary: draft.primary,
      ...(draft.defaultValue !== '' && { defaultValue: draft.defaultValue }),
      ...(draft.comment !== '' && { comment: draft.comment }),
      ...(draft.referenceTable !== '' && {
        foreign: true, referenceTable: draft.referenceTable, referenceColumn: draft.referenceColumn,
      }),
    },
  }))
}

async function update(table: TableRef, former: ColumnDraft, next: ColumnDraft): Promise<void> {
  const { metadata } = await change(api.PUT('/tables/{tableUUID}/columns/{columnName}', {
    params: { header: onTable(table).header, path: { tableUUID: table.uuid, columnName: former.name } },
    body: {
      ...(next.name !== former.name && { name: next.name }),
      ...(next.type !== former.type && { type: next.type, using: next.using as Conversion }),
      ...(next.defaultValue !== former.defaultValue && { defaultValue: next.defaultValue }),
      ...(next.notNull !== former.notNull && { notNull: next.notNull }),
      ...(next.unique !== former.unique && { unique: next.unique }),
      ...(next.comment !== former.comment && { comment: next.comment }),
    },
  }))
  const mentions = mentionsOf(metadata)
  if (mentions !== '') toast(texts.savedNameMentions(next.name, mentions))
}
