import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { api, read } from '../../api/client'
import { Code, formatBytes, Time } from '../../components/Bits'
import { Details } from '../../components/Details'
import { Dialog } from '../../components/Dialog'
import { FilterBar, FilterField, useFilters, useProject } from '../../components/Filters'
import { Page, Stack } from '../../components/Page'
import { SearchTabs } from '../../components/SearchTabs'
import { Empty, Loaded } from '../../components/States'
import { Pager, Table } from '../../components/Table'
import { actionText, actorText, dayStart, type AuditEntry } from './entry'
import css from './Audit.module.css'

const tabs = [
  { value: 'data', text: 'Data' },
  { value: 'platform', text: 'Platform' },
]

const leads = {
  data: 'Changes of the project\'s own database, its files and forms. Backups contain this log.',
  platform: 'Changes around the project, such as keys, backups and members.',
}

/** Who changed what in a project, and when. */
export function Audit() {
  const project = useProject()
  const [{ tab, page, actor, action, from, to, entry }, setFilters] = useFilters('tab', 'page', 'actor', 'action', 'from', 'to', 'entry')
  const log = tab === 'platform' ? 'platform' : 'data'
  const start = dayStart(from)
  const end = dayStart(to, true)
  const query = useQuery({
    queryKey: ['audit', project, log, page, actor, action, start, end],
    queryFn: () => read(api.GET('/projects/{projectUUID}/audit', {
      params: {
        path: { projectUUID: project },
        query: {
          log, page: Number(page) || 1, limit: 50, ...(actor !== '' && { actor }), ...(action !== '' && { action }),
          ...(start !== undefined && { from: start }), ...(end !== undefined && { to: end }),
        },
      },
    })),
    placeholderData: (former, q) => (q?.queryKey[2] === log ? former : undefined),
  })
  const filtered = actor !== '' || action !== '' || from !== '' || to !== ''

  return (
    <Page title="Audit" lead={leads[log]}>
      <SearchTabs label="Log" current={log} tabs={tabs} />
      <FilterBar>
        <FilterField label="Actor" value={actor} placeholder="Name, address or UUID"
          onChange={(next) => setFilters({ actor: next.trim(), page: '' })} />
        <FilterField label="Operation" value={action} placeholder="createTable"
          onChange={(next) => setFilters({ action: next.trim(), page: '' })} />
        <FilterField label="From" type="date" value={from} onChange={(next) => setFilters({ from: next, page: '' })} />
        <FilterField label="To" type="date" value={to} onChange={(next) => setFilters({ to: next, page: '' })} />
      </FilterBar>
      <Loaded query={query}>
        {({ content, metadata }) => content.length === 0 ? (
          <Empty title={filtered ? 'No entry matches' : 'No entry yet'}>
            {filtered ? 'An operation has the name of the API, such as createTable. An actor has to exist.' : 'Every change appears here.'}
          </Empty>
        ) : (
          <>
            <Table label="Audit log" rows={content} keyOf={(e) => String(e.seq)} onOpen={(e) => setFilters({ entry: String(e.seq) })}
              columns={[
                { title: 'Time', cell: (e) => <Time at={e.at} /> },
                { title: 'Actor', cell: actorText },
                { title: 'Operation', cell: (e) => (
                  <button type="button" className={css.open} onClick={() => setFilters({ entry: String(e.seq) })}>
                    {actionText(e.action)}
                  </button>
                ) },
                { title: 'Target', cell: (e) => <span className={css.target}>{e.target}</span>, narrow: true },
                { title: 'Fields', cell: (e) => <span className={css.target}>{e.fields?.join(', ')}</span>, narrow: true },
                { title: 'Client', cell: (e) => e.client, narrow: true },
              ]} />
            <Pager page={metadata.page} pages={metadata.totalPages} total={metadata.total}
              onPage={(n) => setFilters({ page: n === 1 ? '' : String(n) })} />
            <OneEntry project={project} entry={content.find((e) => String(e.seq) === entry)}
              onClose={() => setFilters({ entry: '' })} onActor={(next) => setFilters({ actor: next, entry: '', page: '' })} />
          </>
        )}
      </Loaded>
      <Verification />
    </Page>
  )
}

/** The log cannot be changed without notice; how to check that. */
function Verification() {
  return (
    <details>
      <summary>Verify this log</summary>
      <Stack>
        <p>Each entry has a keyed hash of itself and the one before it. On the server, this command checks the chains of all logs:</p>
        <Code label="command" text="socle audit verify" />
      </Stack>
    </details>
  )
}

function OneEntry({ project, entry: e, onClose, onActor }: {
  project: string
  entry: AuditEntry | undefined
  onClose: () => void
  onActor: (actor: string) => void
}) {
  if (e === undefined) return null

  const actor = e.actor
  return (
    <Dialog title={actionText(e.action)} open onClose={onClose} side>
      <Stack>
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
          ['Target', e.target === undefined ? undefined : <code>{e.target}</code>],
          ['Created', e.created === undefined ? undefined : <code>{e.created}</code>],
          ['Fields of the body', e.fields?.join(', ')],
          ['Received', e.received === undefined ? undefined : formatBytes(e.received)],
          ['Sent', e.sent === undefined ? undefined : formatBytes(e.sent)],
          ['Request', e.request === undefined ? undefined : (
            <Link to={`/projects/${project}/requests` as string} search={{ request: e.request } as never}>{e.request}</Link>
          )],
          ['Hash', <code>{e.hash}</code>],
        ]} />
      </Stack>
    </Dialog>
  )
}
