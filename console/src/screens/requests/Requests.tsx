import { useInfiniteQuery } from '@tanstack/react-query'
import { texts } from '#texts/requests'
import { api, read, type Schemas } from '../../api/client'
import { Badge, Time } from '../../components/Bits'
import { Button } from '../../components/Button'
import { CheckField } from '../../components/Field'
import { useFilters, useProject } from '../../components/Filters'
import { Page, Row } from '../../components/Page'
import { Empty, Failure, Skeleton } from '../../components/States'
import { Table } from '../../components/Table'
import { Explanation } from './Explanation'
import { RequestChart } from './RequestChart'
import { RequestFilters } from './RequestFilters'
import { callerOf, filterNames, microseconds, queryOf, toneOf, type Filters, type Request } from './request'
import css from './Requests.module.css'

const pageSize = 50
const refreshInterval = 3000 // ms

/** The requests of a project's applications and members, newest first. */
export function Requests() {
  const project = useProject()
  const [filters, setFilters] = useFilters(...filterNames, 'request', 'live')
  const live = filters.live === '1'
  const narrowing = Object.fromEntries(filterNames.map((n) => [n, filters[n]])) as Filters
  const query = useInfiniteQuery({
    queryKey: ['requests', project, narrowing],
    queryFn: ({ pageParam }) => read(api.GET('/projects/{projectUUID}/requests', {
      params: {
        path: { projectUUID: project },
        query: { limit: pageSize, ...queryOf(narrowing), ...(pageParam !== '' && { cursor: pageParam }) },
      },
    })),
    initialPageParam: '',
    getNextPageParam: (last) => last.metadata.next,
    // Older pages stay as they are while a person reads them.
    refetchInterval: (q) => (live && (q.state.data?.pages.length ?? 0) <= 1 ? refreshInterval : false),
    placeholderData: (former) => former,
  })
  const rows = query.data?.pages.flatMap((p) => p.content) ?? []
  const filtered = Object.keys(queryOf(narrowing)).length > 0

  return (
    <Page title={texts.requests} lead={texts.whatApplicationsAndMembersAsked} actions={
      <Row>
        <CheckField label={texts.refreshEveryThreeSeconds} checked={live} onChange={(e) => setFilters({ live: e.target.checked ? '1' : '' })} />
        <Button busy={query.isFetching && !live} onClick={() => void query.refetch()}>{texts.refresh}</Button>
      </Row>
    }>
      <RequestFilters filters={narrowing} setFilters={setFilters} onFind={(request) => setFilters({ request })} />
      {query.isPending && <Skeleton />}
      {query.data === undefined && query.error !== null && <Failure error={query.error} retry={() => void query.refetch()} />}
      {query.data !== undefined && rows.length === 0 && (
        <Empty title={filtered ? texts.noRequestMatches : texts.noRequestYet} action={filtered && (
          <Button onClick={() => setFilters(Object.fromEntries(filterNames.map((n) => [n, ''])))}>{texts.removeFilters}</Button>
        )}>
          {texts.aRequestAppearsAboutA}
        </Empty>
      )}
      {rows.length > 0 && (
        <>
          <RequestChart requests={rows} />
          <RequestTable rows={rows} onOpen={(request) => setFilters({ request })} />
          {query.hasNextPage && (
            <Row>
              <Button busy={query.isFetchingNextPage} onClick={() => void query.fetchNextPage()}>{texts.loadOlderRequests}</Button>
            </Row>
          )}
        </>
      )}
      {filters.request !== '' && (
        <Explanation project={project} uuid={filters.request} onClose={() => setFilters({ request: '' })}
          onFilter={(patch) => setFilters({ ...patch, request: '' })} />
      )}
    </Page>
  )
}

function RequestTable({ rows, onOpen }: { rows: Request[]; onOpen: (uuid: string) => void }) {
  return (
    <Table label={texts.requests} rows={rows} keyOf={(r) => r.uuid} onOpen={(r) => onOpen(r.uuid)} columns={[
      { title: texts.status, cell: (r) => <Badge tone={toneOf(r.status)}>{r.status}</Badge> },
      { title: texts.request, cell: (r) => (
        <button type="button" className={css.open} onClick={() => onOpen(r.uuid)}>
          <b>{r.method}</b> {r.route}
          {r.query !== null && <span className={css.query}>?{r.query}</span>}
        </button>
      ) },
      { title: texts.failure, narrow: true, cell: (r: Schemas['Request']) => r.errorCode !== null && (
        <span className={css.failure}><code>{r.errorCode}</code> {r.errorMessage}</span>
      ) },
      { title: texts.caller, cell: callerOf, narrow: true },
      { title: texts.rows, cell: (r) => r.rows?.toLocaleString(), align: 'right', narrow: true },
      { title: texts.duration, cell: (r) => microseconds(r.duration), align: 'right', narrow: true },
      { title: texts.time, cell: (r) => <Time at={r.at} /> },
    ]} />
  )
}
