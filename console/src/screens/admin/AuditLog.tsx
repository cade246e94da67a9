import { Link } from '@tanstack/react-router'
import { useQuery } from '@tanstack/react-query'
import { texts } from '#texts/admin'
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
    <Card title={texts.auditLog} lead={texts.changesOfUsersOrganizationsProjects}>
      <FilterBar>
        <FilterField label={texts.action} placeholder={texts.createProject} value={action}
          onChange={(next) => setFilters({ action: next, page: '' })} />
        <FilterField label={texts.actor} placeholder={texts.uuidOfAUser} value={actor}
          onChange={(next) => setFilters({ actor: next.trim(), page: '' })} />
        <FilterField label={texts.from} type="datetime-local" value={from} onChange={(next) => setFilters({ from: next, page: '' })} />
        <FilterField label={texts.to} type="datetime-local" value={to} onChange={(next) => setFilters({ to: next, page: '' })} />
      </FilterBar>
      <Loaded query={query} rows={10}>
        {({ content, metadata }) => content.length === 0 ? (
          <Empty title={texts.noEntryMatches}>{texts.removeAFilterToSee}</Empty>
        ) : (
          <>
            <Table label={texts.auditLog} rows={content} keyOf={(e) => String(e.seq)} columns={[
              { title: texts.time, cell: (e) => <Time at={e.at} /> },
              { title: texts.actor, cell: (e) => actorOf(e) },
              { title: texts.action, cell: (e) => (
                <Link to="." replace resetScroll={false} aria-label={texts.detailsOfEntrySeqAction(e.seq, e.action)}
                  search={((former: Record<string, unknown>) => ({ ...former, entry: String(e.seq) })) as never}>
                  <code>{e.action}</code>
                </Link>
              ) },
              { title: texts.project, cell: (e) => e.projectName ?? '', narrow: true },
              { title: texts.client, cell: (e) => e.client ?? '', narrow: true },
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
    [texts.number, String(entry.seq)], [texts.time, new Date(entry.at).toLocaleString()], [texts.action, entry.action],
    [texts.actor, actorOf(entry)], [texts.actorUUID, entry.actor], [texts.bySessionOrToken, entry.via], [texts.client, entry.client],
    [texts.target, entry.target], [texts.created, entry.created], [texts.fields, entry.fields?.join(', ')],
    [texts.project, entry.projectName], [texts.organization, entry.organizationName], [texts.request, entry.request], [texts.hash, entry.hash],
  ]

  return (
    <Dialog title={texts.entrySeq(entry.seq)} open onClose={onClose} side>
      <Stack>
        {rows.filter(([, value]) => value).map(([title, value]) => (
          <div key={title}><h3>{title}</h3><Copyable value={value ?? ''} label={title} /></div>
        ))}
      </Stack>
    </Dialog>
  )
}
