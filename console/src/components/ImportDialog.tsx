import { useRef, useState, type FormEvent } from 'react'
import { useNavigate } from '@tanstack/react-router'
import { texts } from '#texts/components'
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
    const text = dryRun ? texts.tryingTheFile : texts.importing
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
    const left = done.rejected > 0 ? texts.rejectedLeftOut(done.rejected.toLocaleString()) : ''
    toast(texts.rowsImportedIntoTableLeft(done.rows.toLocaleString(), done.table, left))
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
    <Dialog title={table === undefined ? texts.importAFileAsA : texts.importRowsIntoTable(table)} open wide
      onClose={() => {
        abort.current?.abort()
        onClose()
      }}>
      <form className={css.form} onSubmit={submit}>
        <FileInput file={file} onChange={choose} />
        {table === undefined && (
          <div className={css.names}>
            <TextField label={texts.nameOfTheTable} required value={name} onChange={(e) => setName(e.target.value)} autoComplete="off" />
            <TextField label={texts.schema} required value={schema} onChange={(e) => setSchema(e.target.value)} autoComplete="off" />
          </div>
        )}
        <ImportOptions options={options} existing={table !== undefined} onChange={(next) => {
          setOptions(next)
          if (next.skip === options.skip) setTried(null) // the file is read in another way
        }} />
        {tried !== null && <ImportReport tried={tried} lines={tried.rejectedLines} />}
        {tried !== null && !skips && (
          <p>{texts.rowsThatCannotBeStored}</p>
        )}
        {failure !== null && <FailureNote error={failure} />}
        {failure instanceof ImportError && failure.lines.length > 0 && <ImportReport tried={null} lines={failure.lines} />}
        {work !== null && (
          <label className={css.work}>
            {work.part < 1 ? texts.textSending(work.text) : texts.theDatabaseReadsTheRows(work.text)}
            <progress {...(work.part < 1 && { value: work.part })} max={1} />
          </label>
        )}
        <footer className={css.foot}>
          {work !== null ? <Button onClick={() => abort.current?.abort()}>{texts.cancelImport}</Button> : <Button onClick={onClose}>{texts.cancel}</Button>}
          {tried !== null && <Button disabled={work !== null} onClick={() => void run(true)}>{texts.tryAgain}</Button>}
          <Button type="submit" look="primary" busy={work !== null} disabled={file === null || (table === undefined && name === '') || (tried !== null && !skips)}>
            {tried === null ? texts.tryFile : texts.importRows(tried.rows.toLocaleString())}
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
      <span>{file === null ? texts.dropACSVTSVExcel : file.name}</span>
      <input type="file" accept=".csv,.tsv,.txt,.json,.jsonl,.ndjson,.xlsx" onChange={(e) => onChange(e.target.files?.[0] ?? null)} />
    </label>
  )
}
