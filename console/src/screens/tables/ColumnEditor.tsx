import { useQuery } from '@tanstack/react-query'
import { texts } from '#texts/tables'
import { api, inProject, read } from '../../api/client'
import { IconButton } from '../../components/Button'
import { inputClass } from '../../components/Field'
import type { Entry } from '../../components/tableList'
import type { Draft } from './definition'
import css from './CreateTable.module.css'

/** One column of a table to create. */
export function ColumnEditor({ project, number, column, tables, onChange, onRemove }: {
  project: string
  number: number
  column: Draft
  tables: Entry[]
  onChange: (column: Draft) => void
  onRemove: () => void
}) {
  const set = (members: Partial<Draft>) => onChange({ ...column, ...members })
  const label = (text: string) => texts.textOfColumnNumber(text, number)

  return (
    <div className={css.column} role="group" aria-label={texts.columnNumber(number)}>
      <div className={css.line}>
        <input className={inputClass} aria-label={label(texts.name)} placeholder={texts.name} value={column.name} autoComplete="off"
          onChange={(e) => set({ name: e.target.value })} />
        <input className={inputClass} aria-label={label(texts.type)} placeholder={texts.type} value={column.type} list="types" autoComplete="off"
          onChange={(e) => set({ type: e.target.value })} />
        <input className={inputClass} aria-label={label(texts.default)} placeholder={texts.default} value={column.defaultValue} autoComplete="off"
          onChange={(e) => set({ defaultValue: e.target.value })} />
        <IconButton label={texts.removeColumnNumber(number)} onClick={onRemove}>✕</IconButton>
      </div>
      <div className={css.line}>
        <Check text={texts.primaryKey} checked={column.primary} onChange={(primary) => set({ primary })} />
        <Check text={texts.notNull} checked={column.notNull || column.primary} disabled={column.primary} onChange={(notNull) => set({ notNull })} />
        <Check text={texts.unique} checked={column.unique || column.primary} disabled={column.primary} onChange={(unique) => set({ unique })} />
        <Reference project={project} label={label(texts.reference)} value={column.reference} tables={tables}
          onChange={(reference, type) => set({ reference, ...(type !== undefined && { type }) })} />
      </div>
    </div>
  )
}

function Check({ text, checked, disabled = false, onChange }: {
  text: string
  checked: boolean
  disabled?: boolean
  onChange: (checked: boolean) => void
}) {
  return (
    <label className={css.check}>
      <input type="checkbox" checked={checked} disabled={disabled} onChange={(e) => onChange(e.target.checked)} />
      {text}
    </label>
  )
}

/** Chooses a table, then one of its columns that can be referred to. The type follows the referenced column. */
function Reference({ project, label, value, tables, onChange }: {
  project: string
  label: string
  value: string
  tables: Entry[]
  onChange: (reference: string, type?: string) => void
}) {
  const cut = value.lastIndexOf('.')
  const table = value.slice(0, Math.max(cut, 0))
  const columns = useQuery({
    queryKey: ['tables', project, table, 'columns'],
    enabled: table !== '',
    queryFn: () => loadColumns(project, table),
  })
  const choices = columns.data?.filter((c) => c.unique || c.primary) ?? []

  async function choose(next: string) {
    if (next === '') return onChange('')
    onChange(`${next}.id`)
    const loaded = await loadColumns(project, next).catch(() => [])
    const target = loaded.find((c) => c.primary) ?? loaded.find((c) => c.unique)
    if (target) onChange(`${next}.${target.name}`, target.type)
  }

  return (
    <>
      <select className={inputClass} aria-label={label} value={table} onChange={(e) => void choose(e.target.value)}>
        <option value="">{texts.refersToNoTable}</option>
        {tables.filter((t) => !t.isView).map((t) => <option key={t.fullName} value={t.fullName}>{texts.refersToFullName(t.fullName)}</option>)}
      </select>
      {table !== '' && choices.length > 1 && (
        <select className={inputClass} aria-label={texts.labelColumn(label)} value={value.slice(cut + 1)} onChange={(e) => {
          onChange(`${table}.${e.target.value}`, choices.find((c) => c.name === e.target.value)?.type)
        }}>
          {choices.map((c) => <option key={c.name}>{c.name}</option>)}
        </select>
      )}
    </>
  )
}

async function loadColumns(project: string, table: string) {
  const { content } = await read(api.GET('/tables/{fullTableName}/columns', {
    params: { path: { fullTableName: table }, header: inProject(project) },
  }))
  return content
}
