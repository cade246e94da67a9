import { useQuery } from '@tanstack/react-query'
import { texts } from '#texts/audit'
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
  { value: 'data', text: texts.data },
  { value: 'platform', text: texts.platform },
]

const leads = {
  data: texts.changesOfTheProjectsOwn,
  platform: texts.changesAroundTheProjectSuch,
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
    <Page title={texts.audit} lead={leads[log]}>
      <SearchTabs label={texts.log} current={log} tabs={tabs} />
      <FilterBar>
        <FilterField label={texts.actor} value={actor} placeholder={texts.nameAddressOrUUID}
          onChange={(next) => setFilters({ actor: next.trim(), page: '' })} />
        <FilterField label={texts.operation} value={action} placeholder={texts.createTable}
          onChange={(next) => setFilters({ action: next.trim(), page: '' })} />
        <FilterField label={texts.from} type="date" value={from} onChange={(next) => setFilters({ from: next, page: '' })} />
        <FilterField label={texts.to} type="date" value={to} onChange={(next) => setFilters({ to: next, page: '' })} />
      </FilterBar>
      <Loaded query={query}>
        {({ content, metadata }) => content.length === 0 ? (
          <Empty title={filtered ? texts.noEntryMatches : texts.noEntryYet}>
            {filtered ? texts.anOperationHasTheName : texts.everyChangeAppearsHere}
          </Empty>
        ) : (
          <>
            <Table label={texts.auditLog} rows={content} keyOf={(e) => String(e.seq)} onOpen={(e) => setFilters({ entry: String(e.seq) })}
              columns={[
                { title: texts.time, cell: (e) => <Time at={e.at} /> },
                { title: texts.actor, cell: actorText },
                { title: texts.operation, cell: (e) => (
                  <button type="button" className={css.open} onClick={() => setFilters({ entry: String(e.seq) })}>
                    {actionText(e.action)}
                  </button>
                ) },
                { title: texts.target, cell: (e) => (
                  <span className={css.target} title={e.target}>{targetText(e.target ?? '', project, names)}</span>
                ), narrow: true },
                { title: texts.fields, cell: (e) => <span className={css.target}>{e.fields?.join(', ')}</span>, narrow: true },
                { title: texts.client, cell: (e) => e.client, narrow: true },
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
      <summary>{texts.verifyThisLog}</summary>
      <Stack>
        <p>{texts.eachEntryHasAKeyed}</p>
        <Code label={texts.command} text={texts.socleAuditVerify} />
      </Stack>
    </details>
  )
}
