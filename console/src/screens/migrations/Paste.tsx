import { lazy, Suspense, useState } from 'react'
import { texts } from '#texts/migrations'
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
    <FormDialog title={texts.pasteAMigration} open side wide onClose={onClose} action={texts.addToList}
      disabled={sql.trim() === '' || !/^\d{1,100}$/.test(version)}
      onSubmit={() => Promise.resolve(onAdd({ version, name, sql: normalized(sql) }))}>
      <div className={css.pair}>
        <TextField label={texts.version} required value={version} hint={texts.digitsSuchAsTheTime}
          onChange={(e) => setVersion(e.target.value)} />
        <TextField label={texts.name} value={name} placeholder={texts.addBooks} onChange={(e) => setName(e.target.value)} />
      </div>
      <div className={css.stack}>
        <strong>{texts.sql}</strong>
        <Suspense fallback={<Skeleton rows={4} />}>
          <CodeEditor label={texts.sql} initial={sql} onChange={setSQL} />
        </Suspense>
        <p className={css.quiet}>
          {texts.oneTransactionWithTheFirst}
        </p>
      </div>
    </FormDialog>
  )
}
