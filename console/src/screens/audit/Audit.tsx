import { useQuery } from '@tanstack/react-query'
import { api, inProject, read } from '../../api/client'
import { Code, Time } from '../../components/Bits'
import { FilterBar, FilterField, useFilters, useProject } from '../../components/Filters'
import { Page, Stack } from '../../components/Page'
import { SearchTabs } from '../../components/SearchTabs'
import { Empty, Loaded } from '../../components/States'
import { Pager, Table } from '../../components/Table'
import { actionText, actorText, dayStart, targetText } from './entry'
import { OneEntry } from './OneEntry'
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
  const names = useNames(project)
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
                { title: 'Target', cell: (e) => (
                  <span className={css.target} title={e.target}>{targetText(e.target ?? '', project, names)}</span>
                ), narrow: true },
                { title: 'Fields', cell: (e) => <span className={css.target}>{e.fields?.join(', ')}</span>, narrow: true },
                { title: 'Client', cell: (e) => e.client, narrow: true },
              ]} />
            <Pager page={metadata.page} pages={metadata.totalPages} total={metadata.total}
              onPage={(n) => setFilters({ page: n === 1 ? '' : String(n) })} />
          </>
        )}
      </Loaded>
      {Number(entry) > 0 && (
        <OneEntry project={project} log={log} seq={Number(entry)} names={names} onClose={() => setFilters({ entry: '' })}
          onActor={(next) => setFilters({ actor: next, entry: '', page: '' })} />
      )}
      <Verification />
    </Page>
  )
}

const known = 100 // forms and containers whose names are shown

/** Names of the project's forms and containers by their UUIDs. */
function useNames(project: string): ReadonlyMap<string, string> {
  const header = inProject(project)
  const forms = useQuery({
    queryKey: ['forms', project, 'names'],
    queryFn: () => read(api.GET('/forms', { params: { header, query: { limit: known, sort: 'updatedAt', order: 'desc' } } })),
  })
  const containers = useQuery({
    queryKey: ['containers', project, 'names'],
    queryFn: () => read(api.GET('/containers', { params: { header, query: { limit: known, sort: 'name' } } })),
  })

  return new Map([...(forms.data?.content ?? []), ...(containers.data?.content ?? [])].map((o) => [o.uuid, o.name]))
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
