/** Counts of requests over time, without their chart. */

import { texts } from '#texts/home'
import type { Schemas } from '../../api/client'
import type { Chart } from '../../components/chart'

export type Bucket = Schemas['Bucket']

/** Returns the counts of all buckets together. */
export function sumOf(buckets: Bucket[]): { requests: number; clientErrors: number; serverErrors: number } {
  return buckets.reduce((sum, b) => ({
    requests: sum.requests + b.requests,
    clientErrors: sum.clientErrors + b.clientErrors,
    serverErrors: sum.serverErrors + b.serverErrors,
  }), { requests: 0, clientErrors: 0, serverErrors: 0 })
}

const secondsOf = (buckets: Bucket[]) => buckets.map((b) => Date.parse(b.at) / 1000)

/** Returns the chart of the counts: failed over refused over answered requests, in bars of their sum. */
export function countsChart(buckets: Bucket[]): Chart {
  return {
    axis: texts.time,
    xs: secondsOf(buckets),
    times: true,
    series: [
      { label: texts.requests, values: buckets.map((b) => b.requests), color: 'accent', bars: true },
      { label: texts.refusedOrFailed, values: buckets.map((b) => b.clientErrors + b.serverErrors), color: 'warning', bars: true },
      { label: texts.failed, values: buckets.map((b) => b.serverErrors), color: 'danger', bars: true },
    ],
    height: 160,
  }
}

/** Returns the chart of the durations; a bucket without requests is a gap. */
export function durationsChart(buckets: Bucket[]): Chart {
  return {
    axis: texts.time,
    xs: secondsOf(buckets),
    times: true,
    series: [
      { label: texts.the99thPercentile, values: buckets.map((b) => b.p99), color: 'accent' },
      { label: texts.median, values: buckets.map((b) => b.p50), color: 'success' },
    ],
    format: durationText,
    height: 110,
  }
}

/** Returns a duration in microseconds as people read it. */
export function durationText(microseconds: number): string {
  if (microseconds < 1000) return texts.microsecondsS(microseconds)
  if (microseconds < 1_000_000) return texts.microsecondsMs((microseconds / 1000).toFixed(microseconds < 10_000 ? 1 : 0))

  return `${(microseconds / 1_000_000).toFixed(1)} s`
}
