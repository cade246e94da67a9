import { useQuery } from '@tanstack/react-query'
import { texts } from '#texts/migrations'
import { api, inProject, read, type Schemas } from '../../api/client'
import { Code } from '../../components/Bits'
import { Button } from '../../components/Button'
import { Dialog } from '../../components/Dialog'
import { Empty, Loaded } from '../../components/States'
import { saveText } from '../../components/transfer'
import { versionOf, type File } from './files'
import css from './Migrations.module.css'

/** The SQL by which the project differs from the files. */
export function Difference({ project, files, onClose }: { project: string; files: File[]; onClose: () => void }) {
  const query = useQuery({
    queryKey: ['migrations', project, 'diff', files],
    queryFn: () => read(api.POST('/migrations/diff', {
      params: { header: inProject(project) }, body: { migrations: files },
    })),
    gcTime: 0,
    retry: false,
  })

  return (
    <Dialog title={files.length === 0 ? texts.schemaOfTheProject : texts.whatTheProjectHasBeyond} open wide
      onClose={onClose}>
      <div className={css.stack}>
        <p className={css.quiet}>
          {texts.theFilesRunInAn}
        </p>
        <Loaded query={query}>{({ content }) => <Found result={content} />}</Loaded>
      </div>
    </Dialog>
  )
}

function Found({ result }: { result: Schemas['SchemaDiff'] }) {
  if (result.files.length === 0 && result.differences.length === 0) {
    return <Empty title={texts.noDifference}>{texts.theProjectIsWhatThe}</Empty>
  }

  return (
    <>
      {result.warnings.map((w) => (
        <p key={w.statement + w.message} className={css.warning}>
          {w.message} <code>{w.statement}</code>
        </p>
      ))}
      {result.files.map((sql, i) => (
        <div key={i} className={css.stack}>
          <div>
            <Button onClick={() => saveText(sql, `${versionOf(new Date(Date.now() + i * 1000))}_changes.sql`)}>
              {texts.downloadAsMigration}
            </Button>
          </div>
          <Code text={sql} label={texts.sqlI(i + 1)} />
        </div>
      ))}
      {result.differences.length > 0 && <h3>{texts.toBeWrittenByHand}</h3>}
      <ul className={css.plain}>
        {result.differences.map((d) => (
          <li key={d.kind + d.name}>
            {d.kind} <code>{d.name}</code>: {d.message}
          </li>
        ))}
      </ul>
    </>
  )
}
