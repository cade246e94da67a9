import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
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
    <Dialog title={found === undefined ? `Entry ${seq}` : actionText(found.action)} open onClose={onClose} side>
      <Loaded query={query}>
        {() => found === undefined ? <Empty title="The log has no such entry">Entries that are older than the log are gone; see which remain in the list.</Empty>
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
      ['Number', e.seq.toLocaleString()],
      ['Time', <><Time at={e.at} />, {new Date(e.at).toLocaleString(undefined, { dateStyle: 'medium', timeStyle: 'medium' })}</>],
      ['Operation', <code>{e.action}</code>],
      ['Actor', actor === undefined ? actorText(e) : (
        <button type="button" className={css.open} onClick={() => onActor(actor)}>{actorText(e)}</button>
      )],
      ['Address', e.actorEmail ?? undefined],
      ['Actor UUID', actor === undefined ? undefined : <code>{actor}</code>],
      ['By session or token', e.via === undefined ? undefined : <code>{e.via}</code>],
      ['Client', e.client],
      ['Project', e.projectName ?? undefined],
      ['Organization', e.organizationName ?? undefined],
      ['Target', e.target === undefined ? undefined : named],
      ['Path', e.target === undefined || named === e.target ? undefined : <code>{e.target}</code>],
      ['Created', e.created === undefined ? undefined : <>{names.get(e.created)} <code>{e.created}</code></>],
      ['Fields of the body', e.fields?.join(', ')],
      ['Received', e.received === undefined ? undefined : formatBytes(e.received)],
      ['Sent', e.sent === undefined ? undefined : formatBytes(e.sent)],
      ['Request', e.request === undefined ? undefined : (
        <Link to={`/projects/${project}/requests` as string} search={{ request: e.request } as never}>{e.request}</Link>
      )],
      ['Hash', <code>{e.hash}</code>],
    ]} />
  )
}
