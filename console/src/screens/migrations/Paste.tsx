import { lazy, Suspense, useState } from 'react'
import { FormDialog } from '../../components/Dialog'
import { TextField } from '../../components/Field'
import { Skeleton } from '../../components/States'
import { normalized, versionOf, type File } from './files'
import css from './Migrations.module.css'

const CodeEditor = lazy(() => import('../../components/CodeEditor').then((m) => ({ default: m.CodeEditor })))

/** Adds a migration that is typed instead of chosen. */
export function Paste({ onAdd, onClose }: { onAdd: (file: File) => void; onClose: () => void }) {
  const [version, setVersion] = useState(() => versionOf(new Date()))
  const [name, setName] = useState('')
  const [sql, setSQL] = useState('')

  return (
    <FormDialog title="Paste a migration" open side wide onClose={onClose} action="Add to list"
      disabled={sql.trim() === '' || !/^\d{1,100}$/.test(version)}
      onSubmit={() => Promise.resolve(onAdd({ version, name, sql: normalized(sql) }))}>
      <div className={css.pair}>
        <TextField label="Version" required value={version} hint="Digits, such as the time."
          onChange={(e) => setVersion(e.target.value)} />
        <TextField label="Name" value={name} placeholder="add_books" onChange={(e) => setName(e.target.value)} />
      </div>
      <div className={css.stack}>
        <strong>SQL</strong>
        <Suspense fallback={<Skeleton rows={4} />}>
          <CodeEditor label="SQL" initial={sql} onChange={setSQL} />
        </Suspense>
        <p className={css.quiet}>
          One transaction. With the first line -- socle: no-transaction each statement is its own.
        </p>
      </div>
    </FormDialog>
  )
}
