import { useState } from 'react'
import { useNavigate } from '@tanstack/react-router'
import { texts } from '#texts/tables'
import { api, inProject, read } from '../../api/client'
import { Code } from '../../components/Bits'
import { Button } from '../../components/Button'
import { useEnums } from '../../components/choices'
import { FormDialog } from '../../components/Dialog'
import { TextField } from '../../components/Field'
import { toast } from '../../components/Toast'
import { ColumnEditor } from './ColumnEditor'
import { draft, initial, named, newColumn, problem, statement, types, type Draft } from './definition'
import { refreshTables } from '../../components/tableList'
import { useTables } from './queries'
import css from './CreateTable.module.css'

/** A dialog that creates a table with its columns. */
export function CreateTable({ project, onClose }: { project: string; onClose: () => void }) {
  const navigate = useNavigate()
  const [name, setName] = useState('')
  const [schema, setSchema] = useState('public')
  const [comment, setComment] = useState('')
  const [columns, setColumns] = useState(initial)
  const [key] = useState(() => crypto.randomUUID())
  const tables = useTables(project)
  const enums = useEnums(project)

  const body = {
    name: name.trim(), schema, ...(comment !== '' && { comment }), columns: named(columns).map(newColumn),
  }

  async function create() {
    const wrong = problem(body.name, columns)
    if (wrong !== '') throw new Error(wrong)

    await read(api.POST('/tables', { params: { header: inProject(project) }, headers: { 'Idempotency-Key': key }, body }))
    await refreshTables(project)
    toast(texts.isCreatedOnlyTheOwner(body.name))
    await navigate({ to: `/projects/${project}/tables/${encodeURIComponent(`${schema}.${body.name}`)}` })
  }

  const change = (next: Draft) => setColumns(columns.map((c) => (c.id === next.id ? next : c)))

  return (
    <FormDialog title={texts.newTable} open onClose={onClose} action={texts.createTable} onSubmit={create} wide>
      <div className={css.names}>
        <TextField label={texts.name} required value={name} onChange={(e) => setName(e.target.value)} autoFocus autoComplete="off" />
        <TextField label={texts.schema} required value={schema} list="schemas" onChange={(e) => setSchema(e.target.value)} autoComplete="off" />
      </div>
      <TextField label={texts.comment} value={comment} onChange={(e) => setComment(e.target.value)} />
      <datalist id="schemas">
        {[...new Set(['public', ...(tables.data ?? []).map((t) => t.schema)])].map((s) => <option key={s}>{s}</option>)}
      </datalist>
      <datalist id="types">
        {[...types, ...(enums.data ?? []).map((e) => (e.schema === 'public' ? e.name : `${e.schema}.${e.name}`))]
          .map((t) => <option key={t}>{t}</option>)}
      </datalist>
      <section className={css.columns} aria-label={texts.columns}>
        <h3>{texts.columns}</h3>
        {columns.map((column, i) => (
          <ColumnEditor key={column.id} project={project} number={i + 1} column={column} onChange={change}
            tables={tables.data ?? []} onRemove={() => setColumns(columns.filter((c) => c.id !== column.id))} />
        ))}
        <Button onClick={() => setColumns([...columns, draft()])}>{texts.addColumn}</Button>
      </section>
      <details>
        <summary>{texts.requestAndSQL}</summary>
        <div className={css.preview}>
          <Code label={texts.theRequest} text={texts.postTablesXProjectStringify(project, JSON.stringify(body, null, 2))} />
          <Code label={texts.theSQLThatDoesThe} text={statement(schema, body.name, columns)} />
        </div>
      </details>
    </FormDialog>
  )
}
