import { expect, test } from 'vitest'
import type { Result } from '../../components/runSQL'
import { chartOf } from './chartOf'

const result = (type: string, rows: Result['rows']): Result =>
  ({ command: '', columns: [{ name: 'x', type }, { name: 'n', type: 'integer' }], rows, rowCount: rows.length, truncated: false })

test('times and numbers are sorted on an axis of their own', () => {
  const times = chartOf(result('timestamp with time zone', [['2026-11-27 12:00:00+01', '2'], ['2026-11-27 10:00:00+00', '1']]), 0, 1, true)
  expect([times.times, times.xs, times.series[0]?.values]).toEqual([true, [1795773600, 1795777200], [1, 2]])

  const numbers = chartOf(result('integer', [['10', '1'], ['9', '2']]), 0, 1, false)
  expect([numbers.xs, numbers.series[0]?.values]).toEqual([[9, 10], [2, 1]])
})

test('names stand side by side, and what is no finite number is left out', () => {
  const chart = chartOf(result('text', [['a', '1'], ['b', 'NaN'], ['c', null], [null, '4']]), 0, 1, false)
  expect([chart.xs, chart.series[0]?.values, chart.nameOf?.(1)]).toEqual([[0, 1], [1, 4], 'null'])
})

test('infinite times have no place', () => {
  expect(chartOf(result('date', [['infinity', '1'], ['2026-11-27', '2']]), 0, 1, true).xs).toHaveLength(1)
})
