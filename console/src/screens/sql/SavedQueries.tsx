import { useState, type ReactNode } from 'react'
import { useQuery } from '@tanstack/react-query'
import { texts } from '#texts/sql'
import { api, read, type Schemas } from '../../api/client'
import { Time } from '../../components/Bits'
import { Button } from '../../components/Button'
import { Confirm, Dialog } from '../../components/Dialog'
import { TextField } from '../../components/Field'
import { Empty, FailureNote, Loaded } from '../../components/States'
import { Pager } from '../../components/Table'
import { toast } from '../../components/Toast'
import { queries } from '../../queries'
import { useSaved } from './tabs'
import css from './SQL.module.css'

type SavedQuery = Schemas['SavedQuery']

interface Props {
  project: string
  text: string // of the open tab
  onOpen: (text: string) => void
  onClose: () => void
}

/** Queries that the developers of the project share under a name. */
export function SavedQueries({ project, text, onOpen, onClose }: Props) {
  const [page, setPage] = useState(1)
  const [deleted, setDeleted] = useState<SavedQuery>()
  const query = useQuery({
    queryKey: ['saved queries', project, page],
    queryFn: () => read(api.GET('/projects/{projectUUID}/saved-queries', {
      params: { path: { projectUUID: project }, query: { page, limit: 50, sort: 'name' } },
    })),
  })

  return (
    <Dialog title={texts.savedQueries} open side onClose={onClose}>
      {text.trim() !== '' && <SaveForm project={project} text={text} known={query.data?.content ?? []} />}
      <Loaded query={query}>
        {({ content, metadata }) => content.length === 0 ? (
          <Empty title={texts.noSavedQueryYet}>{texts.allDevelopersOfTheProject}</Empty>
        ) : (
          <>
            <ul className={css.list}>
              {content.map((s) => (
                <Entry key={s.uuid} name={s.name} text={s.query} onOpen={onOpen} onDelete={() => setDeleted(s)}>
                  <span className={css.meta}><Time at={s.updatedAt} /></span>
                </Entry>
              ))}
            </ul>
            <Pager page={metadata.page} pages={metadata.totalPages} total={metadata.total} onPage={setPage} />
          </>
        )}
      </Loaded>
      <KeptHere project={project} onOpen={onOpen} />
      {deleted && (
        <Confirm title={texts.deleteSavedQuery} open action={texts.deleteQuery} onClose={() => setDeleted(undefined)} onSubmit={async () => {
          await read(api.DELETE('/projects/{projectUUID}/saved-queries/{savedQueryUUID}', {
            params: { path: { projectUUID: project, savedQueryUUID: deleted.uuid } },
          }))
          toast(texts.nameIsDeleted(deleted.name))
          await queries.invalidateQueries({ queryKey: ['saved queries', project] })
        }}>
          {texts.isLostForAllDevelopers(<b>{deleted.name}</b>)}
        </Confirm>
      )}
    </Dialog>
  )
}

/** Saves the open text under a name. The name of a query replaces its text. */
function SaveForm({ project, text, known }: { project: string; text: string; known: SavedQuery[] }) {
  const [name, setName] = useState('')
  const [busy, setBusy] = useState(false)
  const [failure, setFailure] = useState<unknown>(null)
  const former = known.find((s) => s.name === name)

  async function save() {
    setBusy(true)
    setFailure(null)
    try {
      if (former === undefined) {
        await read(api.POST('/projects/{projectUUID}/saved-queries', {
          params: { path: { projectUUID: project } }, body: { name, query: text },
        }))
      } else {
        await read(api.PUT('/projects/{projectUUID}/saved-queries/{savedQueryUUID}', {
          params: { path: { projectUUID: project, savedQueryUUID: former.uuid } }, body: { query: text },
        }))
      }
      toast(texts.nameIsSaved(name))
      setName('')
      await queries.invalidateQueries({ queryKey: ['saved queries', project] })
    } catch (error) {
      setFailure(error)
    } finally {
      setBusy(false)
    }
  }

  return (
    <form className={css.saver} onSubmit={(e) => {
      e.preventDefault()
      void save()
    }}>
      <TextField label={texts.saveTheOpenQueryAs} required maxLength={100} value={name} onChange={(e) => setName(e.target.value)} />
      <Button needs="createSavedQuery" type="submit" look="primary" busy={busy}>{former === undefined ? texts.saveQuery : texts.replaceQuery}</Button>
      {failure !== null && <FailureNote error={failure} />}
    </form>
  )
}

/** Queries that a former version of the console kept in this browser. */
function KeptHere({ project, onOpen }: { project: string; onOpen: (text: string) => void }) {
  const { saved, remove } = useSaved(project)
  if (saved.length === 0) return null

  return (
    <>
      <h3>{texts.keptInThisBrowser}</h3>
      <ul className={css.list}>
        {saved.map((s) => <Entry key={s.name} name={s.name} text={s.text} onOpen={onOpen} onDelete={() => remove(s.name)} />)}
      </ul>
    </>
  )
}

function Entry({ name, text, onOpen, onDelete, children }: {
  name: string
  text: string
  onOpen: (text: string) => void
  onDelete: () => void
  children?: ReactNode
}) {
  return (
    <li>
      <div className={css.entry}>
        <span>{name}</span>
        {children}
        <Button look="quiet" onClick={() => onOpen(text)}>{texts.open}</Button>
        <Button look="danger" aria-label={texts.deleteName(name)} onClick={onDelete}>{texts.delete}</Button>
      </div>
      <pre tabIndex={0} aria-label={texts.textOfName(name)}>{text}</pre>
    </li>
  )
}
