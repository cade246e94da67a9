import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { texts } from '#texts/audit'
import { api, read } from '../../api/client'
import { formatBytes, Time } from '../../components/Bits'
import { Details } from '../../components/Details'
import { Dialog } from '../../components/Dialog'
import { Empty, Loaded } from '../../components/States'
import { actionText, actorText, targetText, type AuditEntry } from './entry'
import css from './Audit.module.css'

/** One entry of a log, by its number. */
export function OneEntry({ project, log, seq, names, onClose, onActor }: {
  project: string
  log: 'data' | 'platform'
  seq: number
  names: ReadonlyMap<string, string>
  onClose: () => void
  onActor: (actor: string) => void
}) {
  const query = useQuery({
    queryKey: ['audit', project, log, 'one', seq],
    queryFn: () => read(api.GET('/projects/{projectUUID}/audit', {
      // Entries are numbered from 1 without gaps: page n of one entry each is entry n.
      params: { path: { projectUUID: project }, query: { log, order: 'asc', limit: 1, page: seq } },
    })),
    staleTime: Infinity,
  })
  const found = query.data?.content.find((e) => e.seq === seq)

  return (
    <Dialog title={found === undefined ? texts.entrySeq(seq) : actionText(found.action)} open onClose={onClose} side>
      <Loaded query={query}>
        {() => found === undefined ? <Empty title={texts.theLogHasNoSuch}>{texts.entriesThatAreOlderThan}</Empty>
          : <Entry project={project} entry={found} names={names} onActor={onActor} />}
      </Loaded>
    </Dialog>
  )
}

function Entry({ project, entry: e, names, onActor }: {
  project: string
  entry: AuditEntry
  names: ReadonlyMap<string, string>
  onActor: (actor: string) => void
}) {
  const actor = e.actor
  const named = e.target === undefined ? '' : targetText(e.target, project, names)

  return (
    <Details entries={[
      [texts.number, e.seq.toLocaleString()],
      [texts.time, <><Time at={e.at} />, {new Date(e.at).toLocaleString(undefined, { dateStyle: 'medium', timeStyle: 'medium' })}</>],
      [texts.operation, <code>{e.action}</code>],
      [texts.actor, actor === undefined ? actorText(e) : (
        <button type="button" className={css.open} onClick={() => onActor(actor)}>{actorText(e)}</button>
      )],
      [texts.address, e.actorEmail ?? undefined],
      [texts.actorUUID, actor === undefined ? undefined : <code>{actor}</code>],
      [texts.bySessionOrToken, e.via === undefined ? undefined : <code>{e.via}</code>],
      [texts.client, e.client],
      [texts.project, e.projectName ?? undefined],
      [texts.organization, e.organizationName ?? undefined],
      [texts.target, e.target === undefined ? undefined : named],
      [texts.path, e.target === undefined || named === e.target ? undefined : <code>{e.target}</code>],
      [texts.created, e.created === undefined ? undefined : <>{names.get(e.created)} <code>{e.created}</code></>],
      [texts.fieldsOfTheBody, e.fields?.join(', ')],
      [texts.received, e.received === undefined ? undefined : formatBytes(e.received)],
      [texts.sent, e.sent === undefined ? undefined : formatBytes(e.sent)],
      [texts.request, e.request === undefined ? undefined : (
        <Link to={`/projects/${project}/requests` as string} search={{ request: e.request } as never}>{e.request}</Link>
      )],
      [texts.hash, <code>{e.hash}</code>],
    ]} />
  )
}
