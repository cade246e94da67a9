import { expect, test } from 'vitest'
import { buckets, filterNames, microseconds, quantile, queryOf, type Filters } from './request'

const none = Object.fromEntries(filterNames.map((n) => [n, ''])) as Filters
const user = '01a21c47-ae22-7089-be0a-04aa0343d995'

test('filters of the URL become a query', () => {
  expect(queryOf(none)).toEqual({})
  expect(queryOf({ ...none, status: '4xx', method: 'GET', table: 'books' })).toEqual({ status: '4xx', method: 'GET', table: 'books' })
  expect(queryOf({ ...none, status: '6xx', user: 'half typed' })).toEqual({})
  expect(queryOf({ ...none, user })).toEqual({ endUserUuid: user })
  expect(queryOf({ ...none, user, userKind: 'platform' })).toEqual({ userUuid: user })
  expect(queryOf({ ...none, since: '1h', to: '2026-01-01T00:00' }, Date.parse('2026-01-01T12:00:00Z'))).toEqual({
    from: '2026-01-01T11:00:00.000Z',
  })
})

test('durations', () => {
  expect(microseconds(900)).toBe('900 µs')
  expect(microseconds(3872)).toBe('3.9 ms')
  expect(microseconds(45_000)).toBe('45 ms')
  expect(microseconds(2_500_000)).toBe('2.5 s')
})

test('buckets count good and failed requests', () => {
  const at = (s: number) => new Date(s * 1000).toISOString()
  const all = buckets([{ at: at(0), status: 200 }, { at: at(9), status: 404 }, { at: at(10), status: 500 }], 2)

  expect(all.map((b) => [b.good, b.failed])).toEqual([[1, 0], [0, 2]])
  expect(buckets([], 2)).toEqual([])
})

test('quantiles', () => {
  expect([quantile([], 0.5), quantile([7], 0.99), quantile([1, 2, 3, 4], 0.5), quantile([1, 2, 3, 4], 0.99)]).toEqual([0, 7, 2, 4])
})
