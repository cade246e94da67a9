import { useState } from 'react'
import { useNavigate, useParams } from '@tanstack/react-router'
import { useInfiniteQuery, useQuery } from '@tanstack/react-query'
import { api, read, type Schemas } from '../../api/client'
import { Badge, Code, Copyable, Time } from '../../components/Bits'
import { Button, ButtonLink } from '../../components/Button'
import { Details } from '../../components/Details'
import { Confirm } from '../../components/Dialog'
import { Card, Page, Row } from '../../components/Page'
import { Empty, Loaded } from '../../components/States'
import { Table } from '../../components/Table'
import { toast } from '../../components/Toast'
import { queries } from '../../queries'
import { keyOf, ScheduleForm } from './ScheduleForm'
import { RunStatus } from './Schedules'
import { duration, inWords } from './words'

type Schedule = Schemas['Schedule']

const refreshInterval = 5000 // ms

/** One schedule with its runs. */
export function Schedule() {
  const { project, schedule } = useParams({ strict: false }) as { project: string; schedule: string }
  const query = useQuery({
    queryKey: ['schedules', project, 'one', schedule],
    refetchInterval: refreshInterval,
    queryFn: () => read(api.GET('/projects/{projectUUID}/schedules/{scheduleName}', {
      params: { path: { projectUUID: project, scheduleName: schedule } },
    })),
  })

  return (
    <Page title={schedule} actions={<ButtonLink to={`/projects/${project}/schedules` as string}>All schedules</ButtonLink>}>
      <Loaded query={query}>
        {({ content, metadata }) => (
          <>
            <Overview project={project} schedule={content} details={metadata} />
            <Runs project={project} schedule={schedule} />
          </>
        )}
      </Loaded>
    </Page>
  )
}

function Overview({ project, schedule: s, details }: { project: string; schedule: Schedule; details: Schemas['Details'] }) {
  const navigate = useNavigate()
  const [act, setAct] = useState<'edit' | 'delete'>()
  const path = { projectUUID: project, scheduleName: keyOf(s) }
  const close = () => setAct(undefined)

  async function attempt(work: () => Promise<unknown>, done: string) {
    try {
      await work()
      toast(done)
      await queries.invalidateQueries({ queryKey: ['schedules', project] })
    } catch (error) {
      toast(error instanceof Error ? error.message : String(error), 'danger')
    }
  }

  const run = () => attempt(() => read(api.POST('/projects/{projectUUID}/schedules/{scheduleName}/run', { params: { path } })),
    'It runs now, or as soon as the run before has ended.')
  const switchOver = () => attempt(() => read(api.PUT('/projects/{projectUUID}/schedules/{scheduleName}', {
    params: { path }, body: { active: !s.active },
  })), s.active ? 'The schedule is paused.' : 'The schedule is active.')

  return (
    <Card title="Schedule" actions={
      <Row>
        <Button needs="runSchedule" look="primary" onClick={() => void run()}>Run now</Button>
        <Button needs="updateSchedule" onClick={() => setAct('edit')}>Edit</Button>
        <Button needs="updateSchedule" onClick={() => void switchOver()}>{s.active ? 'Pause' : 'Resume'}</Button>
        <Button needs="deleteSchedule" look="danger" onClick={() => setAct('delete')}>Delete</Button>
      </Row>
    }>
      <Details entries={[
        ['State', s.active ? <Badge tone="success">active</Badge> : <Badge tone="warning">paused</Badge>],
        ['When', <>{inWords(s.cron)}, {s.timezone} (<code>{s.cron}</code>)</>],
        ['Next runs', !s.active || details.nextRuns.length === 0 ? 'none' : (
          <>{details.nextRuns.map((at) => <div key={at}>{localTime(at)}, <Time at={at} /></div>)}</>
        )],
        ['Endpoint', s.endpoint ?? undefined],
        ['Signing secret', details.secret === null ? undefined : <Copyable value={details.secret} label="the signing secret" secret />],
        ['Overlap', s.overlap === 'skip' ? 'skips a run while the one before is in progress' : 'runs once after the run in progress'],
        ['Time limit', `${s.timeoutSeconds} s`],
      ]} />
      {s.endpoint === null && <Code label="the SQL" text={s.command} />}
      {act === 'edit' && (
        <ScheduleForm project={project} former={s} onClose={close} onSaved={(saved) => {
          toast('The schedule is changed.')
          void navigate({ to: `/projects/${project}/schedules/${encodeURIComponent(keyOf(saved))}` })
        }} />
      )}
      {act === 'delete' && (
        <Confirm title="Delete schedule" open action="Delete schedule" onClose={close} onSubmit={async () => {
          await read(api.DELETE('/projects/{projectUUID}/schedules/{scheduleName}', { params: { path } }))
          toast(`${keyOf(s)} is deleted.`)
          await navigate({ to: `/projects/${project}/schedules` })
          await queries.invalidateQueries({ queryKey: ['schedules', project] })
        }}>
          <b>{keyOf(s)}</b> and the history of its runs are lost. A run in progress goes on.
        </Confirm>
      )}
    </Card>
  )
}

const localTime = (at: string) => new Date(at).toLocaleString(undefined, { dateStyle: 'medium', timeStyle: 'medium' })

function Runs({ project, schedule }: { project: string; schedule: string }) {
  const query = useInfiniteQuery({
    queryKey: ['schedules', project, 'runs', schedule],
    queryFn: ({ pageParam }) => read(api.GET('/projects/{projectUUID}/schedules/{scheduleName}/runs', {
      params: { path: { projectUUID: project, scheduleName: schedule }, query: pageParam === '' ? {} : { cursor: pageParam } },
    })),
    initialPageParam: '',
    getNextPageParam: (last) => last.metadata.next,
    refetchInterval: (q) => ((q.state.data?.pages.length ?? 0) <= 1 ? refreshInterval : false),
  })

  return (
    <Card title="Runs" lead="The last 1,000, for a week.">
      <Loaded query={query}>
        {({ pages }) => {
          const rows = pages.flatMap((p) => p.content)
          if (rows.length === 0) return <Empty title="No run yet">Run it now, or wait for its time.</Empty>

          return (
            <>
              <Table label="Runs" rows={rows} keyOf={(r) => String(r.id)} columns={[
                { title: 'Result', cell: (r) => <><RunStatus status={r.status} />{r.occurrences > 1 && ` ${r.occurrences} times`}</> },
                { title: 'Output', cell: (r) => r.message },
                { title: 'Due', cell: (r) => r.scheduledAt === null ? 'on request' : <Time at={r.scheduledAt} />, narrow: true },
                { title: 'Began', cell: (r) => <Time at={r.startedAt} /> },
                { title: 'Duration', cell: (r) => duration(r.durationMs), align: 'right', narrow: true },
              ]} />
              {query.hasNextPage && (
                <Row><Button busy={query.isFetchingNextPage} onClick={() => void query.fetchNextPage()}>Load older runs</Button></Row>
              )}
            </>
          )
        }}
      </Loaded>
    </Card>
  )
}
