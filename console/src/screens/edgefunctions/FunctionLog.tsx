import { useQuery } from '@tanstack/react-query'
import { texts } from '#texts/edgefunctions'
import { api, read, type Schemas } from '../../api/client'
import { Badge, Time } from '../../components/Bits'
import { CheckField } from '../../components/Field'
import { FilterBar, FilterField, useFilters } from '../../components/Filters'
import { Card } from '../../components/Page'
import { Empty, Loaded } from '../../components/States'
import { Pager, Table } from '../../components/Table'
import css from './EdgeFunctions.module.css'

const followInterval = 2000 // ms

const streams: Record<Schemas['LogLine']['stream'], 'neutral' | 'danger' | 'success'> = {
  stdout: 'neutral', stderr: 'danger', event: 'success',
}

/** What functions wrote, the newest first; all of them, or one. */
export function FunctionLog({ project, name }: { project: string; name?: string }) {
  const [{ logpage, of, follow }, setFilters] = useFilters('logpage', 'of', 'follow')
  const wanted = name ?? of
  const follows = follow === '' && (logpage === '' || logpage === '1')
  const query = useQuery({
    queryKey: ['edge functions', project, 'log', wanted, logpage],
    queryFn: () => read(api.GET('/projects/{projectUUID}/edge-function-log', {
      params: {
        path: { projectUUID: project },
        query: { page: Number(logpage) || 1, limit: 100, order: 'desc', ...(wanted !== '' && { function: wanted }) },
      },
    })),
    placeholderData: (former) => former,
    refetchInterval: follows ? followInterval : false,
  })

  return (
    <Card title={texts.log} lead={texts.linesOfTheLastSeven}>
      <FilterBar>
        {name === undefined && (
          <FilterField label={texts.function} value={of} placeholder={texts.name} onChange={(next) => setFilters({ of: next, logpage: '' })} />
        )}
        <CheckField label={texts.follow} checked={follows} onChange={(e) => setFilters({ follow: e.target.checked ? '' : 'no', logpage: '' })} />
      </FilterBar>
      <Loaded query={query}>
        {({ content, metadata }) => content.length === 0 ? (
          <Empty title={texts.noLineYet}>{texts.whatAFunctionWritesBy}</Empty>
        ) : (
          <>
            <Table label={texts.log} rows={content} keyOf={(l) => String(l.id)} columns={[
              { title: texts.when, cell: (l) => <Time at={l.at} /> },
              ...(name === undefined ? [{ title: texts.function, cell: (l: Schemas['LogLine']) => l.function, narrow: true }] : []),
              { title: texts.stream, cell: (l) => <Badge tone={streams[l.stream]}>{l.stream}</Badge>, narrow: true },
              { title: texts.message, cell: (l) => <code className={css.message}>{l.message}</code> },
            ]} />
            <Pager page={metadata.page} pages={metadata.totalPages} total={metadata.total}
              onPage={(n) => setFilters({ logpage: n === 1 ? '' : String(n) })} />
          </>
        )}
      </Loaded>
    </Card>
  )
}
