import { expect, test } from 'vitest'
import { countsChart, durationText, sumOf } from './series'

test('the bars of failed and refused requests lie within those of all', () => {
  const chart = countsChart([{ at: '2026-11-27T10:00:00Z', requests: 9, clientErrors: 2, serverErrors: 1, p50: 1, p99: 2 }])
  expect([chart.xs, chart.series.map((s) => s.values)]).toEqual([[1795773600], [[9], [3], [1]]])
})

test('durations are read in their unit', () => {
  expect([999, 1500, 42_000, 1_500_000].map(durationText)).toEqual(['999 µs', '1.5 ms', '42 ms', '1.5 s'])
})

test('buckets add up', () => {
  const bucket = { at: '', requests: 3, clientErrors: 2, serverErrors: 1, p50: 1, p99: 2 }
  expect(sumOf([bucket, bucket])).toEqual({ requests: 6, clientErrors: 4, serverErrors: 2 })
})
