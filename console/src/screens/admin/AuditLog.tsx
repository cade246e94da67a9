import { Link } from '@tanstack/react-router'
import { useQuery } from '@tanstack/react-query'
import { api, read, type Schemas } from '../../api/client'
import { Copyable, Time } from '../../components/Bits'
import { Dialog } from '../../components/Dialog'
import { FilterBar, FilterField, useFilters } from '../../components/Filters'
import { Card, Stack } from '../../components/Page'
import { Empty, Loaded } from '../../components/States'
import { Pager, Table } from '../../components/Table'

type Entry = Schemas['AuditEntry']

/** Who changed what on this instance. */
export function AuditLog() {
  const [{ action, actor, from, to, page, entry: open }, setFilters] = useFilters('action', 'actor', 'from', 'to', 'page', 'entry')
  const query = useQuery({
    queryKey: ['instance audit', action, actor, from, to, page],
    queryFn: () => read(api.GET('/admin/audit', { params: { query: {
      page: Number(page) || 1,
      ...(action !== '' && { action }),
      ...(actor !== '' && { actor }),
      ...(from !== '' && { from: new Date(from).toISOString() }),
      ...(to !== '' && { to: new Date(to).toISOString() }),
    } } })),
  })

  return (
    <Card title="Audit log" lead="Changes of users, organizations, projects, keys, backups and settings, newest first.">
      <FilterBar>
        <FilterField label="Action" placeholder="createProject" value={action}
          onChange={(next) => setFilters({ action: next, page: '' })} />
        <FilterField label="Actor" placeholder="UUID of a user" value={actor}
          onChange={(next) => setFilters({ actor: next.trim(), page: '' })} />
        <FilterField label="From" type="datetime-local" value={from} onChange={(next) => setFilters({ from: next, page: '' })} />
        <FilterField label="To" type="datetime-local" value={to} onChange={(next) => setFilters({ to: next, page: '' })} />
      </FilterBar>
      <Loaded query={query} rows={10}>
        {({ content, metadata }) => content.length === 0 ? (
          <Empty title="No entry matches">Remove a filter to see more.</Empty>
        ) : (
          <>
            <Table label="Audit log" rows={content} keyOf={(e) => String(e.seq)} columns={[
              { title: 'Time', cell: (e) => <Time at={e.at} /> },
              { title: 'Actor', cell: (e) => actorOf(e) },
              { title: 'Action', cell: (e) => (
                <Link to="." replace resetScroll={false} aria-label={`Details of entry ${e.seq}: ${e.action}`}
                  search={((former: Record<string, unknown>) => ({ ...former, entry: String(e.seq) })) as never}>
                  <code>{e.action}</code>
                </Link>
              ) },
              { title: 'Project', cell: (e) => e.projectName ?? '', narrow: true },
              { title: 'Client', cell: (e) => e.client ?? '', narrow: true },
            ]} />
            <Pager page={metadata.page} pages={metadata.totalPages} total={metadata.total}
              onPage={(n) => setFilters({ page: String(n) })} />
            {content.filter((e) => String(e.seq) === open).map((e) => (
              <Details key={e.seq} entry={e} onClose={() => setFilters({ entry: '' })} />
            ))}
          </>
        )}
      </Loaded>
    </Card>
  )
}

function actorOf(e: Entry): string {
  return e.actorName ?? e.actorEmail ?? e.actor ?? 'nobody'
}

function Details({ entry, onClose }: { entry: Entry; onClose: () => void }) {
  const rows: [string, string | undefined | null][] = [
    ['Number', String(entry.seq)], ['Time', new Date(entry.at).toLocaleString()], ['Action', entry.action],
    ['Actor', actorOf(entry)], ['Actor UUID', entry.actor], ['By session or token', entry.via], ['Client', entry.client],
    ['Target', entry.target], ['Created', entry.created], ['Fields', entry.fields?.join(', ')],
    ['Project', entry.projectName], ['Organization', entry.organizationName], ['Request', entry.request], ['Hash', entry.hash],
  ]

  return (
    <Dialog title={`Entry ${entry.seq}`} open onClose={onClose} side>
      <Stack>
        {rows.filter(([, value]) => value).map(([title, value]) => (
          <div key={title}><h3>{title}</h3><Copyable value={value ?? ''} label={title} /></div>
        ))}
      </Stack>
    </Dialog>
  )
}
