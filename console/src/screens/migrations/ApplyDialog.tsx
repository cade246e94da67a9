import { useRef, useState } from 'react'
import { api, inProject, type Schemas } from '../../api/client'
import { ApiError, failureOf } from '../../api/failure'
import { Dialog, FormDialog } from '../../components/Dialog'
import type { Report } from '../../components/runSQL'
import { queries } from '../../queries'
import type { File } from './files'
import css from './Migrations.module.css'

/** Applies files, or records them without running them, and shows what came of it. */
export function ApplyDialog({ project, files, pending, recordOnly, allowsLate, onClose }: {
  project: string
  files: File[]
  pending: number
  recordOnly: boolean
  allowsLate: boolean
  onClose: () => void
}) {
  const [result, setResult] = useState<Schemas['ApplyResult'] | null>(null)
  const succeeded = useRef(false) // the form closes itself then, but its result is shown
  if (result !== null) return <Applied result={result} onClose={onClose} />

  async function apply() {
    const { data, error, response } = await api.POST('/migrations', {
      params: { header: inProject(project) },
      body: {
        migrations: files,
        ...(recordOnly && { record_only: true }), ...(allowsLate && { allow_out_of_order: true }),
      },
    })
    await queries.invalidateQueries() // a migration may change anything, also one that fails later
    if (data === undefined) throw described(response, error)
    succeeded.current = true
    setResult(data.content)
  }

  return (
    <FormDialog title={recordOnly ? 'Record migrations as applied' : 'Apply migrations'} open
      onClose={() => !succeeded.current && onClose()} action={recordOnly ? 'Record migrations' : 'Apply migrations'}
      onSubmit={apply}>
      <p>
        {recordOnly
          ? `${countOf(pending)}: recorded as applied without running. Do this if the database has the changes already.`
          : `${countOf(pending)}: run in order, each in its own transaction, until one fails. What ran before a failure stays applied.`}
      </p>
    </FormDialog>
  )
}

const countOf = (files: number) => (files === 1 ? '1 file' : `${files} files`)

interface Metadata {
  version?: string
  name?: string
  applied?: string[]
  postgres?: Report
  appliedChecksum?: string
  fileChecksum?: string
}

/** Returns the failure with the migration, the database's report and what was applied before. */
function described(response: Response, answer: unknown): ApiError {
  const failure = failureOf(response, answer)
  const { version, name, applied, postgres } = (answer as { metadata?: Metadata } | undefined)?.metadata ?? {}
  const parts = [
    version === undefined ? failure.message : `${version} ${name ?? ''}: ${postgres?.message ?? failure.message}`,
    postgres === undefined ? '' : `SQLSTATE ${postgres.sqlstate}, statement ${postgres.statement}` +
      `${postgres.position > 0 ? `, character ${postgres.position}` : ''}.`,
    postgres?.detail ?? '',
    postgres?.hint ?? '',
    applied === undefined || applied.length === 0 ? '' : `Applied before it: ${applied.join(', ')}.`,
  ]

  return new ApiError(failure.status, {
    code: failure.code, detail: parts.filter((p) => p !== '').join('\n'), requestId: failure.requestId,
  }, failure)
}

function Applied({ result, onClose }: { result: Schemas['ApplyResult']; onClose: () => void }) {
  return (
    <Dialog title={`${result.applied.length} applied, ${result.alreadyApplied} before`} open onClose={onClose}>
      <div className={css.stack}>
        <ul className={css.plain}>
          {result.applied.map((m) => (
            <li key={m.version}>
              <code>{m.version}</code> {m.name}{m.durationMs !== null && `, ${m.durationMs.toFixed(0)} ms`}
            </li>
          ))}
        </ul>
        {result.notes.length > 0 && <h3>Left out or changed</h3>}
        <ul className={css.plain}>
          {result.notes.map((n) => (
            <li key={`${n.version}-${n.statement}-${n.text}`}>
              <code>{n.version}</code>, line {n.line}: {n.text}
            </li>
          ))}
        </ul>
        {result.omittedNotes > 0 && <p>{result.omittedNotes} more notes are not shown.</p>}
      </div>
    </Dialog>
  )
}
