/** What a backup or restore says in words. */

import { texts } from '#texts/backups'
import type { Schemas } from '../../api/client'

export type Backup = Schemas['Backup']
export type BackupDetails = Schemas['BackupMetadata']
export type Restore = Schemas['Restore']

export type Tone = 'neutral' | 'success' | 'warning' | 'danger'

/** Reports whether a backup or a restore still changes by itself. */
export function isActive(status: Backup['status'] | Restore['status']): boolean {
  return status === 'pending' || status === 'running' || status === 'deleting'
}

/** Returns the proof of a backup: whether a restore of it succeeded. */
export function proofOf(b: Backup, d: BackupDetails | undefined): { text: string; tone: Tone } {
  if (b.status !== 'completed' || d === undefined) return { text: '', tone: 'neutral' }
  if (d.proofError !== '') return { text: texts.proofFailed, tone: 'danger' }
  if (d.provenAt === null) return { text: texts.notProven, tone: 'warning' }
  if (d.missing.length > 0) return { text: texts.provenCountMissing(d.missing.length), tone: 'warning' }

  return { text: 'proven', tone: 'success' }
}

/** Says why a backup exists. */
export function originOf(d: BackupDetails | undefined): string {
  if (d === undefined) return ''
  if (d.origin === 'imported') return 'imported'
  if (d.before !== null) return texts.before(d.before)

  return d.scheduled ? 'schedule' : 'request'
}

/** Returns milliseconds as "4 s" or "2 min 5 s". */
export function durationText(from: string | null, to: string | null, now = Date.now()): string {
  if (from === null) return ''

  const seconds = Math.max(0, Math.round(((to === null ? now : Date.parse(to)) - Date.parse(from)) / 1000))
  return seconds < 60 ? `${seconds} s` : texts.secondsMinSeconds2S(Math.floor(seconds / 60), seconds % 60)
}

const weekdays = [texts.sundays, texts.mondays, texts.tuesdays, texts.wednesdays, texts.thursdays, texts.fridays, texts.saturdays]

/** Says a simple cron expression in words; others as they are. */
export function cronText(cron: string): string {
  const match = /^(\d{1,2}) (\d{1,2}|\*) (\*) (\*) (\*|[0-6])$/.exec(cron.trim())
  if (!match) return cron

  const [, minute, hour, , , weekday] = match
  if (hour === '*') return weekday === '*' ? texts.everyHourAtMinute(String(minute)) : cron

  const at = `${hour!.padStart(2, '0')}:${minute!.padStart(2, '0')}`
  return weekday === '*' ? texts.everyDayAt(at) : texts.weekdaysAt(String(weekdays[Number(weekday)]), at)
}
