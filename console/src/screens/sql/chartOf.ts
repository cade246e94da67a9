/** The chart of a result: one column over another one. */

import { textOf } from '../../components/exact'
import type { Chart } from '../../components/chart'
import type { Result } from '../../components/runSQL'

export const numeric = /^(smallint|integer|bigint|numeric|real|double precision)/
const temporal = /^(date|timestamp)/
const longestName = 14

/**
 * Returns a chart of column y over column x. Numbers and times are an axis of their own, in ascending order; other values
 * stand side by side in the order of the rows. Rows without a finite number are left out.
 */
export function chartOf({ columns, rows }: Result, x: number, y: number, isLine: boolean): Chart {
  const type = columns[x]?.type ?? ''
  const times = temporal.test(type)
  const scaled = times || numeric.test(type)

  const points = rows
    .map((row) => ({ name: textOf(row[x] ?? null) ?? 'null', value: Number(textOf(row[y] ?? null) ?? NaN) }))
    .map((p, i) => ({ ...p, x: times ? secondsOf(p.name) : scaled ? Number(p.name) : i }))
    .filter((p) => Number.isFinite(p.value) && Number.isFinite(p.x))
    .map((p, i) => (scaled ? p : { ...p, x: i }))
  if (scaled) points.sort((a, b) => a.x - b.x)

  return {
    axis: columns[x]?.name ?? '',
    xs: points.map((p) => p.x),
    times,
    ...(!scaled && { nameOf: (i: number) => (points[i]?.name ?? '').slice(0, longestName) }),
    series: [{ label: columns[y]?.name ?? '', values: points.map((p) => p.value), color: 'accent', bars: !isLine }],
    height: 240,
  }
}

/** Returns the Unix time of a text as PostgreSQL prints it, or NaN. */
function secondsOf(text: string): number {
  return Date.parse(text.replace(' ', 'T').replace(/(:[\d.]+[+-]\d\d)$/, '$1:00')) / 1000
}
