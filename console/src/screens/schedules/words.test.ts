import { expect, test } from 'vitest'
import { duration, inWords } from './words'

test.each([
  ['* * * * *', 'every minute'], ['*/15 * * * *', 'every 15 minutes'], ['0 * * * *', 'every hour'], ['5 * * * *', 'every hour at minute 5'],
  ['0 3 * * *', 'every day at 03:00'], ['30 9 * * 1', 'every Monday at 09:30'], ['0 9 * * 1-5', 'Monday to Friday at 09:00'],
  ['0 0 1 * *', 'on day 1 of the month at 00:00'], ['0 12 $ * *', 'on the last day of the month at 12:00'], ['@DAILY', 'every day at 00:00'],
  ['30 seconds', 'every 30 seconds'], ['0 0 1 1 *', '0 0 1 1 *'], ['1,2 * * * *', '1,2 * * * *'], ['0 3 * * * *', '0 3 * * * *'],
])('%s', (cron, want) => {
  expect(inWords(cron)).toBe(want)
})

test.each([[null, ''], [3.4, '3 ms'], [1234, '1.2 s'], [180_000, '3 min']])('duration %s', (ms, want) => {
  expect(duration(ms)).toBe(want)
})
