import { expect, test } from 'vitest'
import { ageOf } from './age'
import { tableOf } from './queries'

test.each([[null, ''], [0, '0 s'], [59, '59 s'], [60, '1 min'], [3700, '1 h'], [200_000, '2 d']])('age of %s', (seconds, want) => {
  expect(ageOf(seconds)).toBe(want)
})

test('tables of queues', () => {
  expect(tableOf('mails', 'waiting')).toBe('pgmq.q_mails')
  expect(tableOf('Mails "x"', 'archived')).toBe('pgmq."a_mails ""x"""')
})
