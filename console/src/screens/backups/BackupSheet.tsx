import { useMutation, useQuery } from '@tanstack/react-query'
import { texts } from '#texts/backups'
import { api, inProject, read } from '../../api/client'
import { Copyable, formatBytes, Time } from '../../components/Bits'
import { Button } from '../../components/Button'
import { Details } from '../../components/Details'
import { Dialog } from '../../components/Dialog'
import { Row, Stack } from '../../components/Page'
import { FailureNote, Loaded } from '../../components/States'
import { queries } from '../../queries'
import { durationText, isActive, originOf, type Backup } from './backup'
import { BackupState, Proof } from './BackupList'
import { MissingObjects } from './MissingObjects'
import css from './Backups.module.css'

const pollInterval = 2000 // ms
const proofPatience = 10 * 60_000 // ms until the sheet no longer waits for a proof

/** One backup with its proof. */
export function BackupSheet({ project, uuid, onAct, onClose }: {
  project: string
  uuid: string
  onAct: (kind: 'restore' | 'download' | 'delete', backup: Backup) => void
  onClose: () => void
}) {
  const params = { header: inProject(project), path: { backupUUID: uuid } }
  const verify = useMutation({
    mutationFn: () => read(api.POST('/backups/{backupUUID}/verify', { params })),
  })
  const triedBefore = verify.data?.metadata.triedAt
  const query = useQuery({
    queryKey: ['backups', project, 'one', uuid],
    queryFn: () => read(api.GET('/backups/{backupUUID}', { params })),
    refetchInterval: (q) => {
      const active = q.state.data !== undefined && isActive(q.state.data.content.status)
      return active || proves(q.state.data?.metadata.triedAt) ? pollInterval : false
    },
  })

  /** Reports whether the requested proof has no result yet. */
  function proves(triedAt: string | null | undefined): boolean {
    return verify.isSuccess && triedAt === triedBefore && Date.now() - verify.submittedAt < proofPatience
  }

  return (
    <Dialog title={texts.backup} open onClose={onClose} side>
      <Loaded query={query}>
        {({ content: b, metadata: d }) => (
          <Stack>
            <Row>
              <Button needs="restoreBackup" look="primary" disabled={b.status !== 'completed'} onClick={() => onAct('restore', b)}>
                {texts.restoreBackup}
              </Button>
              <Button needs="verifyBackup" disabled={b.status !== 'completed' || proves(d.triedAt)} busy={verify.isPending}
                onClick={() => verify.mutate(undefined, {
                  onSuccess: () => void queries.invalidateQueries({ queryKey: ['backups', project] }),
                })}>
                {proves(d.triedAt) ? texts.proving : texts.proveBackup}
              </Button>
              <Button needs="downloadBackup" disabled={b.status !== 'completed'} onClick={() => onAct('download', b)}>
                {texts.downloadBackup}
              </Button>
              <Button needs="deleteBackup" look="danger" onClick={() => onAct('delete', b)}>{texts.deleteBackup}</Button>
            </Row>
            {verify.error !== null && <FailureNote error={verify.error} />}
            <Details entries={[
              [texts.state, <BackupState backup={b} details={d} />],
              [texts.failure, b.error === '' ? undefined : b.error],
              [texts.begun, b.startedAt === null ? texts.notYet : <Time at={b.startedAt} />],
              [texts.took, durationText(b.startedAt, b.completedAt)],
              [texts.madeBy, originOf(d)],
              [texts.sizeOfTheDump, d.size === null ? undefined : formatBytes(d.size)],
              [texts.proof, b.status === 'completed' ? <Proof backup={b} details={d} /> : undefined],
              [texts.proven, d.provenAt === null ? undefined : <Time at={d.provenAt} />],
              [texts.lastAttempt, d.triedAt === null ? undefined : <Time at={d.triedAt} />],
              [texts.whyItFailed, d.proofError === '' ? undefined : d.proofError],
              ['UUID', <Copyable value={b.uuid} label={texts.uuid} />],
            ]} />
            {d.warnings.length > 0 && (
              <div className={css.warning}>
                <b>{texts.aRestoreCannotRecover}</b>
                <ul className={css.missing}>{d.warnings.map((w) => <li key={w}>{w}</li>)}</ul>
              </div>
            )}
            <MissingObjects missing={d.missing} />
          </Stack>
        )}
      </Loaded>
    </Dialog>
  )
}
