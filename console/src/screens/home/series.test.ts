import { expect, test } from 'vitest'
import { durationText, lineOf, sumOf } from './series'

test('a line has gaps where there was no request', () => {
  expect(lineOf([10, 5, null, 10], 10)).toBe('M0 0L0.5 0L1.5 50L2 50M3 0L3.5 0L4 0')
  expect(lineOf([null], 10)).toBe('')
})

test('durations are read in their unit', () => {
  expect([999, 1500, 42_000, 1_500_000].map(durationText)).toEqual(['999 µs', '1.5 ms', '42 ms', '1.5 s'])
})

test('buckets add up', () => {
  const bucket = { at: '', requests: 3, clientErrors: 2, serverErrors: 1, p50: 1, p99: 2 }
  expect(sumOf([bucket, bucket])).toEqual({ requests: 6, clientErrors: 4, serverErrors: 2 })
})
