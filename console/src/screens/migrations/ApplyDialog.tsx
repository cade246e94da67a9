import { useRef, useState } from 'react'
import { texts } from '#texts/migrations'
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
    <FormDialog title={recordOnly ? texts.recordMigrationsAsApplied : texts.applyMigrations} open
      onClose={() => !succeeded.current && onClose()} action={recordOnly ? texts.recordMigrations : texts.applyMigrations}
      onSubmit={apply}>
      <p>
        {recordOnly
          ? texts.recordedAsAppliedWithoutRunning(countOf(pending))
          : texts.runInOrderEachIn(countOf(pending))}
      </p>
    </FormDialog>
  )
}

const countOf = (files: number) => (files === 1 ? '1 file' : texts.files(files))

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
    postgres === undefined ? '' : texts.sqlstateStatement(postgres.sqlstate, postgres.statement) +
      `${postgres.position > 0 ? texts.characterPosition(postgres.position) : ''}.`,
    postgres?.detail ?? '',
    postgres?.hint ?? '',
    applied === undefined || applied.length === 0 ? '' : texts.appliedBeforeItApplied(applied.join(', ')),
  ]

  return new ApiError(failure.status, {
    code: failure.code, detail: parts.filter((p) => p !== '').join('\n'), requestId: failure.requestId,
  }, failure)
}

function Applied({ result, onClose }: { result: Schemas['ApplyResult']; onClose: () => void }) {
  return (
    <Dialog title={texts.countAppliedAlreadyAppliedBefore(result.applied.length, result.alreadyApplied)} open onClose={onClose}>
      <div className={css.stack}>
        <ul className={css.plain}>
          {result.applied.map((m) => (
            <li key={m.version}>
              <code>{m.version}</code> {m.name}{m.durationMs !== null && texts.durationMsMs(m.durationMs.toFixed(0))}
            </li>
          ))}
        </ul>
        {result.notes.length > 0 && <h3>{texts.leftOutOrChanged}</h3>}
        <ul className={css.plain}>
          {result.notes.map((n) => (
            <li key={`${n.version}-${n.statement}-${n.text}`}>
              {texts.versionLineText(<code>{n.version}</code>, n.line, n.text)}
            </li>
          ))}
        </ul>
        {result.omittedNotes > 0 && <p>{texts.moreNotesAreNotShown(result.omittedNotes)}</p>}
      </div>
    </Dialog>
  )
}
