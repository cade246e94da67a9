import { useState } from 'react'
import { useMutation, useQuery } from '@tanstack/react-query'
import { texts } from '#texts/backups'
import { api, inProject, read } from '../../api/client'
import { Badge, formatBytes, Time } from '../../components/Bits'
import { Button } from '../../components/Button'
import { useFilters } from '../../components/Filters'
import { Menu } from '../../components/Menu'
import { Row } from '../../components/Page'
import { Empty, FailureNote, Loaded } from '../../components/States'
import { Pager, Table } from '../../components/Table'
import { queries } from '../../queries'
import { BackupSheet } from './BackupSheet'
import { DeleteBackup, DownloadBackup, ImportBackup } from './acts'
import { durationText, isActive, originOf, proofOf, type Backup, type BackupDetails } from './backup'
import { RestoreWizard } from './RestoreWizard'
import css from './Backups.module.css'

const pollInterval = 2000 // ms, while a backup runs

type Act = { kind: 'restore' | 'download' | 'delete'; backup: Backup }

/** The backups of a project, newest first. */
export function BackupList({ project }: { project: string }) {
  const [{ page, backup: open }, setFilters] = useFilters('page', 'backup')
  const [act, setAct] = useState<Act | null>(null)
  const [imports, setImports] = useState(false)
  const header = inProject(project)
  const refresh = () => queries.invalidateQueries({ queryKey: ['backups', project] })
  const query = useQuery({
    queryKey: ['backups', project, 'list', page],
    queryFn: () => read(api.GET('/backups', {
      params: { header, query: { page: Number(page) || 1, sort: 'createdAt', order: 'desc' } },
    })),
    placeholderData: (former) => former,
    refetchInterval: (q) => (q.state.data?.content.some((b) => isActive(b.status)) ? pollInterval : 15_000),
  })
  const create = useMutation({
    mutationFn: (key: string) => read(api.POST('/backups', { params: { header }, body: {}, headers: { 'Idempotency-Key': key } })),
    onSuccess: refresh,
  })
  const make = (
    <Button needs="createBackup" look="primary" busy={create.isPending} onClick={() => create.mutate(crypto.randomUUID())}>
      {texts.createBackup}
    </Button>
  )

  return (
    <>
      <Row>
        {make}
        <Button needs="importBackup" onClick={() => setImports(true)}>{texts.importBackup}</Button>
      </Row>
      {create.error !== null && <FailureNote error={create.error} />}
      <Loaded query={query}>
        {({ content, metadata }) => content.length === 0 ? (
          <Empty title={texts.noBackupYet} action={make}>{texts.createOneNowAndA}</Empty>
        ) : (
          <>
            <Table label={texts.backups} rows={content} keyOf={(b) => b.uuid} onOpen={(b) => setFilters({ backup: b.uuid })}
              columns={[
                { title: texts.made, cell: (b) => (
                  <button type="button" className={css.open} onClick={() => setFilters({ backup: b.uuid })}>
                    {b.startedAt === null ? texts.waiting : <Time at={b.startedAt} />}
                  </button>
                ) },
                { title: texts.state, cell: (b) => <BackupState backup={b} details={metadata.details[b.uuid]} /> },
                { title: texts.proof, cell: (b) => <Proof backup={b} details={metadata.details[b.uuid]} /> },
                { title: texts.by, cell: (b) => originOf(metadata.details[b.uuid]), narrow: true },
                { title: texts.took, cell: (b) => durationText(b.startedAt, b.completedAt), align: 'right', narrow: true },
                { title: texts.size, cell: (b) => sizeOf(metadata.details[b.uuid]), align: 'right', narrow: true },
                { title: texts.actions, align: 'right', cell: (b) => (
                  <Menu label={texts.actionsForThisBackup} items={[
                    { text: texts.restoreBackup, disabled: b.status !== 'completed', needs: 'restoreBackup',
                      onSelect: () => setAct({ kind: 'restore', backup: b }) },
                    { text: texts.downloadBackup, disabled: b.status !== 'completed', needs: 'downloadBackup',
                      onSelect: () => setAct({ kind: 'download', backup: b }) },
                    { text: texts.deleteBackup, danger: true, needs: 'deleteBackup',
                      onSelect: () => setAct({ kind: 'delete', backup: b }) },
                  ]} />
                ) },
              ]} />
            <Pager page={metadata.page} pages={metadata.totalPages} total={metadata.total}
              onPage={(n) => setFilters({ page: n === 1 ? '' : String(n) })} />
          </>
        )}
      </Loaded>
      {open !== '' && (
        <BackupSheet project={project} uuid={open} onClose={() => setFilters({ backup: '' })}
          onAct={(kind, backup) => setAct({ kind, backup })} />
      )}
      {act?.kind === 'restore' && <RestoreWizard project={project} backup={act.backup} onClose={() => setAct(null)} />}
      {act?.kind === 'download' && <DownloadBackup project={project} backup={act.backup} onClose={() => setAct(null)} />}
      {act?.kind === 'delete' && <DeleteBackup project={project} backup={act.backup} onClose={() => setAct(null)} />}
      {imports && <ImportBackup project={project} onClose={() => setImports(false)} />}
    </>
  )
}

function sizeOf(d: BackupDetails | undefined): string {
  return d?.size == null ? '' : formatBytes(d.size)
}

export function BackupState({ backup, details }: { backup: Backup; details: BackupDetails | undefined }) {
  const tones = { pending: 'neutral', running: 'neutral', completed: 'success', failed: 'danger', deleting: 'warning' } as const

  return (
    <>
      <Badge tone={tones[backup.status]}>{backup.status}</Badge>
      {isActive(backup.status) && <progress className={css.progress} aria-label={texts.backupUnderWay} />}
      {details !== undefined && details.waitingFor !== '' && <span className={css.note}>{texts.waitsForWaitingFor(details.waitingFor)}</span>}
    </>
  )
}

export function Proof({ backup, details }: { backup: Backup; details: BackupDetails | undefined }) {
  const proof = proofOf(backup, details)
  if (proof.text === '') return null

  return <Badge tone={proof.tone}>{proof.text}</Badge>
}
