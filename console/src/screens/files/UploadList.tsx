import { texts } from '#texts/files'
import { ApiError } from '../../api/failure'
import { Badge, formatBytes } from '../../components/Bits'
import { Button } from '../../components/Button'
import { Row } from '../../components/Page'
import { FailureNote } from '../../components/States'
import type { UploadState } from './uploads'
import css from './Files.module.css'

/** The uploads of this visit with their progress. */
export function UploadList({ uploads, retry, cancel, clear }: {
  uploads: UploadState[]
  retry: (id: number, replaces: boolean) => void
  cancel: (id: number) => void
  clear: () => void
}) {
  if (uploads.length === 0) return null

  const done = uploads.filter((u) => u.status === 'done').length
  return (
    <section className={css.uploads} aria-label={texts.uploads}>
      <Row>
        <b role="status">{texts.doneOfCountUploaded(done, uploads.length)}</b>
        <Button look="quiet" onClick={clear}>{texts.clearFinished}</Button>
      </Row>
      <ul>
        {uploads.map((u) => <UploadRow key={u.id} upload={u} retry={retry} cancel={cancel} />)}
      </ul>
    </section>
  )
}

function UploadRow({ upload: u, retry, cancel }: {
  upload: UploadState
  retry: (id: number, replaces: boolean) => void
  cancel: (id: number) => void
}) {
  const busy = u.status === 'waiting' || u.status === 'running'
  const taken = u.error instanceof ApiError && u.error.status === 409

  return (
    <li className={css.upload}>
      <span className={css.fileName}>{u.fullName}</span>
      {busy ? (
        <progress aria-label={texts.progressOfFullName(u.fullName)} max={u.file.size || 1} value={Math.min(u.sent, u.file.size)} />
      ) : (
        <span>
          <Badge tone={u.status === 'done' ? 'success' : u.status === 'failed' ? 'danger' : 'neutral'}>{u.status}</Badge>{' '}
          {formatBytes(u.file.size)}
        </span>
      )}
      <Row>
        {busy && <Button look="quiet" onClick={() => cancel(u.id)}>{texts.cancel}</Button>}
        {u.status === 'failed' && taken && <Button onClick={() => retry(u.id, true)}>{texts.replaceFile}</Button>}
        {(u.status === 'canceled' || (u.status === 'failed' && !taken)) && (
          <Button onClick={() => retry(u.id, u.replaces)}>{texts.tryAgain}</Button>
        )}
      </Row>
      {u.status === 'failed' && <FailureNote error={u.error} />}
    </li>
  )
}
