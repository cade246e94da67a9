import { useState } from 'react'
import { useQuery } from '@tanstack/react-query'
import { texts } from '#texts/migrations'
import { api, inProject, read } from '../../api/client'
import { Button } from '../../components/Button'
import { CheckField } from '../../components/Field'
import { Row } from '../../components/Page'
import { Empty, Failure, Skeleton } from '../../components/States'
import { ApplyDialog } from './ApplyDialog'
import { Difference } from './Difference'
import { checksumOf, merged, normalized, parseName, stateOf, type Applied, type File, type State } from './files'
import { FileList } from './FileList'
import { Paste } from './Paste'
import css from './Migrations.module.css'

const most = 1_000 // migrations of a request
const pageSize = 100

type Opened = 'paste' | 'apply' | 'record' | 'compare' | null

/** Files that a person chose: what the project knows of them, and what to do with them. */
export function Apply({ project, files, onFiles }: {
  project: string
  files: File[]
  onFiles: (files: File[]) => void
}) {
  const [opened, setOpened] = useState<Opened>(null)
  const [allowsLate, setAllowsLate] = useState(false)
  const [skipped, setSkipped] = useState<string[]>([])
  const applied = useQuery({ queryKey: ['migrations', project, 'all'], queryFn: () => appliedOf(project) })
  const states = useStates(files, applied.data)
  const pending = files.filter((_, i) => states[i] !== 'applied')
  const isLate = states.includes('late')
  const close = () => setOpened(null)

  async function take(list: FileList | null) {
    const chosen = [...(list ?? [])]
    const named = chosen.map((f) => ({ file: f, parsed: parseName(f.name) }))
    const added: File[] = []
    for (const { file, parsed } of named) {
      if (parsed !== null) added.push({ ...parsed, sql: normalized(await file.text()) })
    }
    onFiles(merged(files, added).slice(0, most))
    setSkipped(named.filter((n) => n.parsed === null).map((n) => n.file.name))
  }

  if (applied.error !== null && applied.data === undefined) {
    return <Failure error={applied.error} retry={() => void applied.refetch()} />
  }
  if (applied.data === undefined) return <Skeleton />

  return (
    <>
      <Row>
        <label className={css.upload}>
          {texts.chooseFiles}
          <input type="file" accept=".sql" multiple onChange={(e) => {
            void take(e.target.files)
            e.target.value = ''
          }} />
        </label>
        <Button onClick={() => setOpened('paste')}>{texts.pasteSQL}</Button>
        <Button onClick={() => setOpened('compare')}>
          {files.length === 0 ? texts.showSchemaAsSQL : texts.compareWithProject}
        </Button>
      </Row>
      {skipped.length > 0 && (
        <p className={css.warning}>{texts.leftOutSinceTheirNames(skipped.join(', '))}</p>
      )}
      {files.length === 0 ? (
        <Empty title={texts.noFileChosen}>
          {texts.chooseTheFilesOfYour}
        </Empty>
      ) : (
        <>
          <FileList files={files} states={states}
            onRemove={(version) => onFiles(files.filter((f) => f.version !== version))} />
          {isLate && (
            <CheckField label={texts.applyFilesThatAreOlder} checked={allowsLate}
              hint={texts.otherwiseTheRequestIsRefused} onChange={(e) => setAllowsLate(e.target.checked)} />
          )}
          <Row>
            <Button look="primary" disabled={pending.length === 0} onClick={() => setOpened('apply')}>
              {applyText(pending.length)}
            </Button>
            <Button disabled={pending.length === 0} onClick={() => setOpened('record')}>{texts.recordAsApplied}</Button>
            <Button look="quiet" onClick={() => onFiles([])}>{texts.clearList}</Button>
          </Row>
        </>
      )}
      {opened === 'paste' && <Paste onClose={close} onAdd={(file) => onFiles(merged(files, [file]))} />}
      {(opened === 'apply' || opened === 'record') && (
        <ApplyDialog project={project} files={files} pending={pending.length} recordOnly={opened === 'record'}
          allowsLate={isLate && allowsLate} onClose={close} />
      )}
      {opened === 'compare' && <Difference project={project} files={files} onClose={close} />}
    </>
  )
}

function applyText(pending: number): string {
  if (pending === 0) return texts.nothingToApply
  return pending === 1 ? 'Apply 1 migration' : texts.applyPendingMigrations(pending)
}

async function appliedOf(project: string): Promise<Applied[]> {
  const all: Applied[] = []
  for (let page = 1, pages = 1; page <= pages; page++) {
    const { content, metadata } = await read(api.GET('/migrations', {
      params: { header: inProject(project), query: { page, limit: pageSize } },
    }))
    all.push(...content)
    pages = metadata.totalPages
  }

  return all
}

function useStates(files: File[], applied: Applied[] | undefined): State[] {
  const { data } = useQuery({
    queryKey: ['checksums', files],
    queryFn: () => Promise.all(files.map((f) => checksumOf(f.sql))),
    staleTime: Infinity,
    gcTime: 0,
  })

  return files.map((file, i) => stateOf(file, data?.[i] ?? null, applied ?? []))
}
