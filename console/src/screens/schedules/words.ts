/** Times of a schedule in words. */

import { texts } from '#texts/schedules'

const words: Record<string, string> = {
  '@hourly': texts.everyHour, '@daily': texts.everyDayAtThe00The00, '@midnight': texts.everyDayAtThe00The00, '@weekly': texts.everySundayAtThe00The00,
  '@monthly': 'on the first of the month at 00:00', '@yearly': 'on 1 January at 00:00', '@annually': 'on 1 January at 00:00',
}
const days = [texts.sunday, texts.monday, texts.tuesday, texts.wednesday, texts.thursday, texts.friday, texts.saturday, texts.sunday]

/** Expressions to begin with. */
export const examples: Record<string, string> = {
  '* * * * *': texts.everyMinute, '*/15 * * * *': 'Every 15 minutes', '0 * * * *': texts.everyHour2, '0 3 * * *': texts.everyNightAtThree,
  '0 9 * * 1': texts.everyMondayAtThe9, '0 0 1 * *': texts.onTheFirstOfThe, '30 seconds': 'Every 30 seconds',
}

/** Returns a common cron expression in words, and others as they are. */
export function inWords(cron: string): string {
  const text = cron.trim().toLowerCase()
  if (words[text] !== undefined) return words[text]

  const seconds = /^(\d+) seconds?$/.exec(text)
  if (seconds) return seconds[1] === '1' ? texts.everySecond : texts.everySeconds(String(seconds[1]))

  const [minute, hour, day, month, weekday, ...more] = text.split(/\s+/)
  if (weekday === undefined || more.length > 0 || month !== '*') return cron
  if (hour === '*' && day === '*' && weekday === '*') return ofHour(minute ?? '') ?? cron
  if (!/^\d+$/.test(minute ?? '') || !/^\d+$/.test(hour ?? '')) return cron

  const at = `at ${hour?.padStart(2, '0')}:${minute?.padStart(2, '0')}`
  if (day === '*' && weekday === '*') return texts.everyDayAt(at)
  if (day === '*' && weekday === '1-5') return texts.mondayToFridayAt(at)
  if (day === '*' && /^[0-7]$/.test(weekday)) return texts.everyDaysAt(String(days[Number(weekday)]), at)
  if (weekday === '*' && day === '$') return `on the last day of the month ${at}`
  if (weekday === '*' && /^\d+$/.test(day ?? '')) return `on day ${day} of the month ${at}`

  return cron
}

function ofHour(minute: string): string | undefined {
  const step = /^\*\/(\d+)$/.exec(minute)
  if (minute === '*') return texts.everyMinute2
  if (step) return texts.everyStepMinutes(String(step[1]))
  if (/^\d+$/.test(minute)) return minute === '0' ? texts.everyHour : texts.everyHourAtMinute(minute)

  return undefined
}

/** Returns a duration in milliseconds as "1.2 s". */
export function duration(ms: number | null): string {
  if (ms === null) return ''
  if (ms < 1000) return texts.ms(Math.round(ms))

  return ms < 120_000 ? `${(ms / 1000).toFixed(1)} s` : texts.msMin(Math.round(ms / 60_000))
}
