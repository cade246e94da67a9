import { useMemo } from 'react'
import { useQuery } from '@tanstack/react-query'
import { texts } from '#texts/home'
import { api, read } from '../../api/client'
import { Time } from '../../components/Bits'
import { SelectField } from '../../components/Field'
import { Card } from '../../components/Page'
import { Plot } from '../../components/Plot'
import { Empty, Loaded } from '../../components/States'
import { useURLState } from '../../url'
import css from './RequestsOverTime.module.css'
import { countsChart, durationsChart, durationText, sumOf, type Bucket } from './series'

const spans = { hour: texts.lastHour, day: texts.lastDay, week: texts.lastWeek } as const
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
    <Card title={texts.requests} actions={
      <SelectField label={texts.time} value={span} onChange={(e) => setSpan(e.target.value)}>
        {Object.entries(spans).map(([value, text]) => <option key={value} value={value}>{text}</option>)}
      </SelectField>
    }>
      <Loaded query={query} rows={3}>
        {({ content, metadata }) => sumOf(content).requests === 0 ? (
          <Empty title={texts.noRequestInThisTime}>{texts.whatYourApplicationAsksOf}</Empty>
        ) : (
          <>
            <Counts buckets={content} />
            <Durations buckets={content} />
            {metadata.incompleteBefore !== null && (
              <p className={css.caption}>{texts.requestsBeforeAreNotCounted(<Time at={metadata.incompleteBefore} />)}</p>
            )}
          </>
        )}
      </Loaded>
    </Card>
  )
}

function Counts({ buckets }: { buckets: Bucket[] }) {
  const chart = useMemo(() => countsChart(buckets), [buckets])
  const sum = sumOf(buckets)
  const words = texts.requestsClientErrorsRefusedThe4xx(sum.requests.toLocaleString(), sum.clientErrors.toLocaleString())
    + texts.serverErrorsFailedThe5xx(sum.serverErrors.toLocaleString())

  return (
    <figure className={css.figure}>
      <Plot label={words} chart={chart} />
      <figcaption className={css.caption}>{words}</figcaption>
    </figure>
  )
}

function Durations({ buckets }: { buckets: Bucket[] }) {
  const chart = useMemo(() => durationsChart(buckets), [buckets])
  const words = texts.longestThe99thPercentileLongestMedian(durationText(Math.max(0, ...buckets.map((b) => b.p99 ?? 0))))
    + durationText(Math.max(0, ...buckets.map((b) => b.p50 ?? 0)))

  return (
    <figure className={css.figure}>
      <Plot label={words} chart={chart} />
      <figcaption className={css.caption}>{words}</figcaption>
    </figure>
  )
}
