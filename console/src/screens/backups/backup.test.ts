import { expect, test } from 'vitest'
import { cronText, durationText, originOf, proofOf, type Backup, type BackupDetails } from './backup'

const backup: Backup = { uuid: 'b', projectUuid: 'p', status: 'completed', startedAt: null, completedAt: null, error: '' }
const details: BackupDetails = {
  size: 1, origin: 'made', triedAt: null, provenAt: '2026-01-01T00:00:00Z', proofError: '', scheduled: false, before: null,
  waitingFor: '', warnings: [], missing: [],
}

test('a proof is a successful restore', () => {
  expect(proofOf(backup, details)).toEqual({ text: 'proven', tone: 'success' })
  expect(proofOf(backup, { ...details, provenAt: null }).text).toBe('not proven')
  expect(proofOf(backup, { ...details, proofError: 'disk full' }).tone).toBe('danger')
  expect(proofOf({ ...backup, status: 'running' }, details).text).toBe('')
})

test('the origin of a backup', () => {
  expect(originOf(details)).toBe('request')
  expect(originOf({ ...details, scheduled: true })).toBe('schedule')
  expect(originOf({ ...details, before: 'deleteTable' })).toBe('before deleteTable')
})

test('durations', () => {
  expect(durationText('2026-01-01T00:00:00Z', '2026-01-01T00:00:04Z')).toBe('4 s')
  expect(durationText('2026-01-01T00:00:00Z', '2026-01-01T00:02:05Z')).toBe('2 min 5 s')
  expect(durationText(null, null)).toBe('')
})

test('cron expressions in words', () => {
  expect(cronText('30 2 * * *')).toBe('every day at 02:30')
  expect(cronText('0 4 * * 0')).toBe('Sundays at 04:00')
  expect(cronText('15 * * * *')).toBe('every hour at minute 15')
  expect(cronText('*/5 1-3 * * *')).toBe('*/5 1-3 * * *')
})
