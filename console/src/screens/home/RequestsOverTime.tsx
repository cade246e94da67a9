import { useQuery } from '@tanstack/react-query'
import { api, read } from '../../api/client'
import { Time } from '../../components/Bits'
import { SelectField } from '../../components/Field'
import { Card } from '../../components/Page'
import { Empty, Loaded } from '../../components/States'
import { useURLState } from '../../url'
import css from './RequestsOverTime.module.css'
import { durationText, lineOf, sumOf, type Bucket } from './series'

const spans = { hour: 'Last hour', day: 'Last day', week: 'Last week' } as const
type Span = keyof typeof spans

/** The project's requests over time: how many, how many failed, how long they took. */
export function RequestsOverTime({ project, enabled }: { project: string; enabled: boolean }) {
  const [chosen, setSpan] = useURLState('span', 'day')
  const span: Span = chosen in spans ? (chosen as Span) : 'day'
  const query = useQuery({
    queryKey: ['request series', project, span],
    enabled,
    refetchInterval: 60_000,
    queryFn: () => read(api.GET('/projects/{projectUUID}/request-series', {
      params: { path: { projectUUID: project }, query: { span } },
    })),
  })

  return (
    <Card title="Requests" actions={
      <SelectField label="Time" value={span} onChange={(e) => setSpan(e.target.value)}>
        {Object.entries(spans).map(([value, text]) => <option key={value} value={value}>{text}</option>)}
      </SelectField>
    }>
      <Loaded query={query} rows={3}>
        {({ content, metadata }) => sumOf(content).requests === 0 ? (
          <Empty title="No request in this time">What your application asks of this project is counted here.</Empty>
        ) : (
          <>
            <Bars buckets={content} />
            <Durations buckets={content} />
            {metadata.incompleteBefore !== null && (
              <p className={css.caption}>Requests before <Time at={metadata.incompleteBefore} /> are not counted: there are too many.</p>
            )}
          </>
        )}
      </Loaded>
    </Card>
  )
}

const clock = (at: string) => new Date(at).toLocaleString(undefined, { dateStyle: 'short', timeStyle: 'short' })

function Bars({ buckets }: { buckets: Bucket[] }) {
  const most = Math.max(1, ...buckets.map((b) => b.requests))
  const sum = sumOf(buckets)
  const words = `${sum.requests.toLocaleString()} requests, ${sum.clientErrors.toLocaleString()} refused (4xx), `
    + `${sum.serverErrors.toLocaleString()} failed (5xx)`

  return (
    <figure className={css.figure}>
      <svg className={css.bars} viewBox={`0 0 ${buckets.length} 100`} preserveAspectRatio="none" role="img" aria-label={words}>
        {buckets.map((b, i) => {
          const failed = (b.serverErrors / most) * 100
          const refused = (b.clientErrors / most) * 100
          const good = (b.requests / most) * 100 - failed - refused

          return (
            <g key={b.at}>
              <title>{`${clock(b.at)}: ${b.requests} requests, ${b.clientErrors} refused, ${b.serverErrors} failed`}</title>
              <rect className={css.slot} x={i} y={0} width={1} height={100} />
              <rect className={css.good} x={i + 0.1} y={100 - good} width={0.8} height={good} />
              <rect className={css.refused} x={i + 0.1} y={100 - good - refused} width={0.8} height={refused} />
              <rect className={css.failed} x={i + 0.1} y={100 - good - refused - failed} width={0.8} height={failed} />
            </g>
          )
        })}
      </svg>
      <figcaption className={css.caption}>{words}, at most {most.toLocaleString()} in one bar</figcaption>
    </figure>
  )
}

function Durations({ buckets }: { buckets: Bucket[] }) {
  const slowest = Math.max(1, ...buckets.map((b) => b.p99 ?? 0))
  const words = `Longest 99th percentile ${durationText(slowest)}, longest median `
    + durationText(Math.max(0, ...buckets.map((b) => b.p50 ?? 0)))

  return (
    <figure className={css.figure}>
      <svg className={css.lines} viewBox={`0 0 ${buckets.length} 100`} preserveAspectRatio="none" role="img" aria-label={words}>
        <path className={css.p99} d={lineOf(buckets.map((b) => b.p99), slowest)} />
        <path className={css.p50} d={lineOf(buckets.map((b) => b.p50), slowest)} />
      </svg>
      <figcaption className={css.caption}>
        <span className={css.p99Key}>99th percentile</span>, <span className={css.p50Key}>median</span>. {words}
      </figcaption>
    </figure>
  )
}
