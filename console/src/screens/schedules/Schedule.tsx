import { useState } from 'react'
import { useNavigate, useParams } from '@tanstack/react-router'
import { useInfiniteQuery, useQuery } from '@tanstack/react-query'
import { texts } from '#texts/schedules'
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
    <Page title={schedule} actions={<ButtonLink to={`/projects/${project}/schedules` as string}>{texts.allSchedules}</ButtonLink>}>
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
    texts.itRunsNowOrAs)
  const switchOver = () => attempt(() => read(api.PUT('/projects/{projectUUID}/schedules/{scheduleName}', {
    params: { path }, body: { active: !s.active },
  })), s.active ? texts.theScheduleIsPaused : texts.theScheduleIsActive)

  return (
    <Card title={texts.schedule} actions={
      <Row>
        <Button needs="runSchedule" look="primary" onClick={() => void run()}>{texts.runNow}</Button>
        <Button needs="updateSchedule" onClick={() => setAct('edit')}>{texts.edit}</Button>
        <Button needs="updateSchedule" onClick={() => void switchOver()}>{s.active ? texts.pause : texts.resume}</Button>
        <Button needs="deleteSchedule" look="danger" onClick={() => setAct('delete')}>{texts.delete}</Button>
      </Row>
    }>
      <Details entries={[
        [texts.state, s.active ? <Badge tone="success">{texts.active2}</Badge> : <Badge tone="warning">{texts.paused}</Badge>],
        [texts.when, <>{inWords(s.cron)}, {s.timezone} (<code>{s.cron}</code>)</>],
        [texts.nextRuns, !s.active || details.nextRuns.length === 0 ? 'none' : (
          <>{details.nextRuns.map((at) => <div key={at}>{localTime(at)}, <Time at={at} /></div>)}</>
        )],
        [texts.endpoint, s.endpoint ?? undefined],
        [texts.signingSecret, details.secret === null ? undefined : <Copyable value={details.secret} label={texts.theSigningSecret} secret />],
        [texts.overlap, s.overlap === 'skip' ? texts.skipsARunWhileThe : texts.runsOnceAfterTheRun],
        [texts.timeLimit, `${s.timeoutSeconds} s`],
      ]} />
      {s.endpoint === null && <Code label={texts.theSQL} text={s.command} />}
      {act === 'edit' && (
        <ScheduleForm project={project} former={s} onClose={close} onSaved={(saved) => {
          toast(texts.theScheduleIsChanged)
          void navigate({ to: `/projects/${project}/schedules/${encodeURIComponent(keyOf(saved))}` })
        }} />
      )}
      {act === 'delete' && (
        <Confirm title={texts.deleteSchedule} open action={texts.deleteSchedule} onClose={close} onSubmit={async () => {
          await read(api.DELETE('/projects/{projectUUID}/schedules/{scheduleName}', { params: { path } }))
          toast(texts.sIsDeleted(keyOf(s)))
          await navigate({ to: `/projects/${project}/schedules` })
          await queries.invalidateQueries({ queryKey: ['schedules', project] })
        }}>
          {texts.andTheHistoryOfIts(<b>{keyOf(s)}</b>)}
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
    <Card title={texts.runs} lead={texts.theLastOneThe000For}>
      <Loaded query={query}>
        {({ pages }) => {
          const rows = pages.flatMap((p) => p.content)
          if (rows.length === 0) return <Empty title={texts.noRunYet}>{texts.runItNowOrWait}</Empty>

          return (
            <>
              <Table label={texts.runs} rows={rows} keyOf={(r) => String(r.id)} columns={[
                { title: texts.result, cell: (r) => <><RunStatus status={r.status} />{r.occurrences > 1 && texts.occurrencesTimes(r.occurrences)}</> },
                { title: texts.output, cell: (r) => r.message },
                { title: texts.due, cell: (r) => r.scheduledAt === null ? 'on request' : <Time at={r.scheduledAt} />, narrow: true },
                { title: texts.began, cell: (r) => <Time at={r.startedAt} /> },
                { title: texts.duration, cell: (r) => duration(r.durationMs), align: 'right', narrow: true },
              ]} />
              {query.hasNextPage && (
                <Row><Button busy={query.isFetchingNextPage} onClick={() => void query.fetchNextPage()}>{texts.loadOlderRuns}</Button></Row>
              )}
            </>
          )
        }}
      </Loaded>
    </Card>
  )
}
