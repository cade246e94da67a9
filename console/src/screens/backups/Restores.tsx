import { useState } from 'react'
import { Link } from '@tanstack/react-router'
import { useQuery } from '@tanstack/react-query'
import { texts } from '#texts/backups'
import { api, inProject, read } from '../../api/client'
import { Badge, Time } from '../../components/Bits'
import { Button } from '../../components/Button'
import { Confirm } from '../../components/Dialog'
import { useFilters } from '../../components/Filters'
import { Card, Row } from '../../components/Page'
import { Empty, Loaded } from '../../components/States'
import { Pager } from '../../components/Table'
import { queries } from '../../queries'
import { durationText, isActive, type Restore } from './backup'
import { MissingObjects } from './MissingObjects'
import css from './Backups.module.css'

const pollInterval = 2000 // ms, while a restore runs

/** Restores of the project, newest first. */
export function Restores({ project }: { project: string }) {
  const [{ page }, setFilters] = useFilters('page')
  const [asked, setAsked] = useState<{ kind: 'undo' | 'discard'; restore: Restore } | null>(null)
  const header = inProject(project)
  const query = useQuery({
    queryKey: ['restores', project, page],
    queryFn: () => read(api.GET('/restores', {
      params: { header, query: { page: Number(page) || 1, sort: 'createdAt', order: 'desc' } },
    })),
    refetchInterval: (q) => (q.state.data?.content.some((r) => isActive(r.status)) ? pollInterval : false),
  })

  async function act(kind: 'undo' | 'discard', restore: Restore) {
    const params = { header, path: { restoreUUID: restore.uuid } }
    await (kind === 'undo' ? read(api.POST('/restores/{restoreUUID}/undo', { params }))
      : read(api.DELETE('/restores/{restoreUUID}', { params })))
    await queries.invalidateQueries() // the project has other data now
  }

  return (
    <>
      <Loaded query={query}>
        {({ content, metadata }) => content.length === 0 ? (
          <Empty title={texts.noRestoreYet}>{texts.openABackupToRestore}</Empty>
        ) : (
          <>
            {content.map((r) => (
              <RestoreCard key={r.uuid} project={project} restore={r} onAct={(kind) => setAsked({ kind, restore: r })} />
            ))}
            <Pager page={metadata.page} pages={metadata.totalPages} total={metadata.total}
              onPage={(n) => setFilters({ page: n === 1 ? '' : String(n) })} />
          </>
        )}
      </Loaded>
      {asked?.kind === 'undo' && (
        <Confirm title={texts.undoTheRestore} open onClose={() => setAsked(null)} action={texts.undoRestore} name="undo"
          onSubmit={() => act('undo', asked.restore)}>
          <p>
            {texts.theProjectGetsTheData(<Time at={asked.restore.completedAt} />)}
          </p>
        </Confirm>
      )}
      {asked?.kind === 'discard' && (
        <Confirm title={texts.discardTheKeptData} open onClose={() => setAsked(null)} action={texts.discardData} name="discard"
          onSubmit={() => act('discard', asked.restore)}>
          <p>{texts.theDatabaseAndFilesThat}</p>
        </Confirm>
      )}
    </>
  )
}

const tones = { pending: 'neutral', running: 'neutral', completed: 'success', failed: 'danger' } as const

function RestoreCard({ project, restore: r, onAct }: {
  project: string
  restore: Restore
  onAct: (kind: 'undo' | 'discard') => void
}) {
  const kept = r.keptUntil !== null && Date.parse(r.keptUntil) > Date.now()

  return (
    <Card title={r.target === 'new' ? texts.intoANewProject : texts.inPlace} lead={<>
        <Badge tone={tones[r.status]}>{r.status}</Badge>{' '}
        {isActive(r.status) && <progress className={css.progress} aria-label={texts.restoreUnderWay} />}{' '}
        <Time at={r.createdAt} />
        {r.startedAt !== null && texts.tookStartedAt(durationText(r.startedAt, r.completedAt))}
        {r.undoneAt !== null && <>{texts.undoneTime(<Time at={r.undoneAt} />)}</>}
      </>} actions={kept && (
      <Row>
        {r.undoneAt === null && <Button needs="undoRestore" onClick={() => onAct('undo')}>{texts.undoRestore}</Button>}
        <Button needs="deleteRestore" look="danger" onClick={() => onAct('discard')}>
          {r.undoneAt === null ? texts.discardFormerData : texts.discardRestoredData}
        </Button>
      </Row>
    )}>
      {r.error !== '' && <p className={css.warning}>{r.error}</p>}
      {kept && (
        <p className={css.note}>
          {texts.isKeptBesideThePresent(r.undoneAt === null ? texts.theFormerData : texts.theRestoredData, <Time at={r.keptUntil} />)}
        </p>
      )}
      {r.target === 'new' && r.status === 'completed' && r.projectUuid !== project && (
        <p><Link to={`/projects/${r.projectUuid}` as string}>{texts.openTheNewProject}</Link></p>
      )}
      <p>
        <Link to={`/projects/${project}/backups` as string} search={{ backup: r.backupUuid } as never}>{texts.showTheBackup}</Link>
      </p>
      <MissingObjects missing={r.missing} />
    </Card>
  )
}
