/** Counts of requests over time, without their chart. */

import type { Schemas } from '../../api/client'

export type Bucket = Schemas['Bucket']

/** Returns the counts of all buckets together. */
export function sumOf(buckets: Bucket[]): { requests: number; clientErrors: number; serverErrors: number } {
  return buckets.reduce((sum, b) => ({
    requests: sum.requests + b.requests,
    clientErrors: sum.clientErrors + b.clientErrors,
    serverErrors: sum.serverErrors + b.serverErrors,
  }), { requests: 0, clientErrors: 0, serverErrors: 0 })
}

/** Returns the path of a line in a box of one unit per value and 100 units up. Gaps stay gaps; a lone value is a dash. */
export function lineOf(values: (number | null)[], most: number): string {
  let path = ''
  values.forEach((value, i) => {
    if (value === null) return

    const y = 100 - (value / most) * 100
    const begins = i === 0 || values[i - 1] === null
    path += begins ? `M${i} ${y}L${i + 0.5} ${y}` : `L${i + 0.5} ${y}`
    if (values[i + 1] === null || i === values.length - 1) path += `L${i + 1} ${y}`
  })

  return path
}

/** Returns a duration in microseconds as people read it. */
export function durationText(microseconds: number): string {
  if (microseconds < 1000) return `${microseconds} µs`
  if (microseconds < 1_000_000) return `${(microseconds / 1000).toFixed(microseconds < 10_000 ? 1 : 0)} ms`

  return `${(microseconds / 1_000_000).toFixed(1)} s`
}
