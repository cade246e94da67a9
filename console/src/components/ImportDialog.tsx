import { useRef, useState, type FormEvent } from 'react'
import { useNavigate } from '@tanstack/react-router'
import { Button } from './Button'
import { Dialog } from './Dialog'
import { TextField } from './Field'
import { FailureNote } from './States'
import { toast } from './Toast'
import { queries } from '../queries'
import { ImportOptions, noOptions, queryOf } from './ImportOptions'
import { ImportReport } from './ImportReport'
import { refreshTables } from './tableList'
import { formatOf, ImportError, tableNameOf, upload, type Imported } from './importFile'
import css from './ImportDialog.module.css'

/** Imports a file: first tried, with what the server makes of it, then done. Without a table it creates one. */
export function ImportDialog({ project, table, onClose }: { project: string; table?: string; onClose: () => void }) {
  const navigate = useNavigate()
  const [file, setFile] = useState<File | null>(null)
  const [name, setName] = useState('')
  const [schema, setSchema] = useState('public')
  const [options, setOptions] = useState(noOptions)
  const [tried, setTried] = useState<Imported | null>(null)
  const [work, setWork] = useState<{ text: string; part: number } | null>(null)
  const [failure, setFailure] = useState<unknown>(null)
  const abort = useRef<AbortController | null>(null)

  function choose(next: File | null) {
    setFile(next)
    setTried(null)
    setFailure(null)
    if (next === null) return
    setOptions({ ...options, format: formatOf(next.name) })
    if (name === '') setName(tableNameOf(next.name))
  }

  async function run(dryRun: boolean) {
    if (file === null) return
    const path = table === undefined ? '/tables/import' : `/tables/${encodeURIComponent(table)}/import`
    const query = {
      ...(table === undefined && { name, schema }),
      ...queryOf(options, table !== undefined),
      ...(dryRun && { dry_run: 'true', on_error: 'skip' }),
    }
    const text = dryRun ? 'Trying the file' : 'Importing'
    abort.current = new AbortController()
    setWork({ text, part: 0 })
    setFailure(null)

    try {
      const done = await upload(project, path, query, file, (part) => setWork({ text, part }), abort.current.signal)
      if (dryRun) return setTried(done)
      await finish(done)
    } catch (error) {
      setFailure(error)
    } finally {
      setWork(null)
    }
  }

  async function finish(done: Imported) {
    await Promise.all([refreshTables(project), queries.invalidateQueries({ queryKey: ['rows', project] })])
    const left = done.rejected > 0 ? `, ${done.rejected.toLocaleString()} left out` : ''
    toast(`${done.rows.toLocaleString()} rows imported into ${done.table}${left}`)
    onClose()
    if (table === undefined) {
      const fullName = done.table.includes('.') ? done.table : `${schema}.${done.table}`
      await navigate({ to: `/projects/${project}/tables/${encodeURIComponent(fullName)}` })
    }
  }

  function submit(e: FormEvent) {
    e.preventDefault()
    e.stopPropagation()
    void run(tried === null)
  }

  const skips = options.skip || tried?.rejected === 0

  return (
    <Dialog title={table === undefined ? 'Import a file as a table' : `Import rows into ${table}`} open wide
      onClose={() => {
        abort.current?.abort()
        onClose()
      }}>
      <form className={css.form} onSubmit={submit}>
        <FileInput file={file} onChange={choose} />
        {table === undefined && (
          <div className={css.names}>
            <TextField label="Name of the table" required value={name} onChange={(e) => setName(e.target.value)} autoComplete="off" />
            <TextField label="Schema" required value={schema} onChange={(e) => setSchema(e.target.value)} autoComplete="off" />
          </div>
        )}
        <ImportOptions options={options} existing={table !== undefined} onChange={(next) => {
          setOptions(next)
          if (next.skip === options.skip) setTried(null) // the file is read in another way
        }} />
        {tried !== null && <ImportReport tried={tried} lines={tried.rejectedLines} />}
        {tried !== null && !skips && (
          <p>Rows that cannot be stored end the import. Correct the file, or choose “Leave out rows that cannot be stored”.</p>
        )}
        {failure !== null && <FailureNote error={failure} />}
        {failure instanceof ImportError && failure.lines.length > 0 && <ImportReport tried={null} lines={failure.lines} />}
        {work !== null && (
          <label className={css.work}>
            {work.part < 1 ? `${work.text}: sending` : `${work.text}: the database reads the rows`}
            <progress {...(work.part < 1 && { value: work.part })} max={1} />
          </label>
        )}
        <footer className={css.foot}>
          {work !== null ? <Button onClick={() => abort.current?.abort()}>Cancel import</Button> : <Button onClick={onClose}>Cancel</Button>}
          {tried !== null && <Button disabled={work !== null} onClick={() => void run(true)}>Try again</Button>}
          <Button type="submit" look="primary" busy={work !== null} disabled={file === null || (table === undefined && name === '') || (tried !== null && !skips)}>
            {tried === null ? 'Try file' : `Import ${tried.rows.toLocaleString()} rows`}
          </Button>
        </footer>
      </form>
    </Dialog>
  )
}

function FileInput({ file, onChange }: { file: File | null; onChange: (file: File | null) => void }) {
  const [over, setOver] = useState(false)

  return (
    <label className={`${css.drop} ${over ? css.over : ''}`} onDragOver={(e) => {
      e.preventDefault()
      setOver(true)
    }} onDragLeave={() => setOver(false)} onDrop={(e) => {
      e.preventDefault()
      setOver(false)
      onChange(e.dataTransfer.files[0] ?? null)
    }}>
      <span>{file === null ? 'Drop a CSV, TSV, Excel (XLSX) or JSON file here, or choose one.' : file.name}</span>
      <input type="file" accept=".csv,.tsv,.txt,.json,.jsonl,.ndjson,.xlsx" onChange={(e) => onChange(e.target.files?.[0] ?? null)} />
    </label>
  )
}
