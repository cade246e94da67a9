import { useState } from 'react'
import { Link, useNavigate } from '@tanstack/react-router'
import { useQuery } from '@tanstack/react-query'
import { texts } from '#texts/schedules'
import { api, read, type Schemas } from '../../api/client'
import { Badge, Time } from '../../components/Bits'
import { Button } from '../../components/Button'
import { useProject } from '../../components/Filters'
import { Page } from '../../components/Page'
import { Empty, Loaded } from '../../components/States'
import { Pager, Table } from '../../components/Table'
import { useURLState } from '../../url'
import { keyOf, ScheduleForm } from './ScheduleForm'
import { inWords } from './words'

type Schedule = Schemas['Schedule']

const refreshInterval = 10_000 // ms

/** Work by the clock. */
export function Schedules() {
  const project = useProject()
  const navigate = useNavigate()
  const [page, setPage] = useURLState('page', '1')
  const [creates, setCreates] = useState(false)
  const query = useQuery({
    queryKey: ['schedules', project, page],
    refetchInterval: refreshInterval,
    queryFn: () => read(api.GET('/projects/{projectUUID}/schedules', {
      params: { path: { projectUUID: project }, query: { page: Number(page), sort: 'name' } },
    })),
  })
  const create = <Button needs="createSchedule" look="primary" onClick={() => setCreates(true)}>{texts.createSchedule}</Button>
  const address = (s: Schedule) => `/projects/${project}/schedules/${encodeURIComponent(keyOf(s))}`

  return (
    <Page title={texts.schedules} lead={texts.sqlOrACallOf} actions={create}>
      <Loaded query={query}>
        {({ content, metadata }) => content.length === 0 ? (
          <Empty title={texts.noScheduleYet} action={create}>{texts.cleanUpAtNightOr}</Empty>
        ) : (
          <>
            <Table label={texts.schedules} rows={content} keyOf={(s) => String(s.id)} onOpen={(s) => void navigate({ to: address(s) })} columns={[
              { title: texts.name, cell: (s) => <Link to={address(s) as string}>{keyOf(s)}</Link> },
              { title: texts.when, cell: (s) => <>{inWords(s.cron)} <span>({s.timezone})</span></> },
              { title: texts.nextRun, cell: (s) => s.active ? <Time at={s.nextRunAt} /> : <Badge tone="warning">{texts.paused}</Badge>, narrow: true },
              { title: texts.lastRun, cell: (s) => s.lastStatus === null ? 'none' : <><RunStatus status={s.lastStatus} /> <Time at={s.lastRunAt} /></> },
            ]} />
            <Pager page={metadata.page} pages={metadata.totalPages} total={metadata.total} onPage={(n) => setPage(String(n))} />
          </>
        )}
      </Loaded>
      {creates && <ScheduleForm project={project} onClose={() => setCreates(false)} onSaved={(s) => void navigate({ to: address(s) })} />}
    </Page>
  )
}

const tones: Record<string, 'success' | 'danger' | 'warning' | 'neutral'> = {
  succeeded: 'success', failed: 'danger', missed: 'danger', skipped: 'warning',
}

export function RunStatus({ status }: { status: string }) {
  return <Badge tone={tones[status] ?? 'neutral'}>{status}</Badge>
}
