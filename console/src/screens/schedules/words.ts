/** Times of a schedule in words. */

const words: Record<string, string> = {
  '@hourly': 'every hour', '@daily': 'every day at 00:00', '@midnight': 'every day at 00:00', '@weekly': 'every Sunday at 00:00',
  '@monthly': 'on the first of the month at 00:00', '@yearly': 'on 1 January at 00:00', '@annually': 'on 1 January at 00:00',
}
const days = ['Sunday', 'Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday', 'Sunday']

/** Expressions to begin with. */
export const examples: Record<string, string> = {
  '* * * * *': 'Every minute', '*/15 * * * *': 'Every 15 minutes', '0 * * * *': 'Every hour', '0 3 * * *': 'Every night at 3',
  '0 9 * * 1': 'Every Monday at 9', '0 0 1 * *': 'On the first of the month', '30 seconds': 'Every 30 seconds',
}

/** Returns a common cron expression in words, and others as they are. */
export function inWords(cron: string): string {
  const text = cron.trim().toLowerCase()
  if (words[text] !== undefined) return words[text]

  const seconds = /^(\d+) seconds?$/.exec(text)
  if (seconds) return seconds[1] === '1' ? 'every second' : `every ${seconds[1]} seconds`

  const [minute, hour, day, month, weekday, ...more] = text.split(/\s+/)
  if (weekday === undefined || more.length > 0 || month !== '*') return cron
  if (hour === '*' && day === '*' && weekday === '*') return ofHour(minute ?? '') ?? cron
  if (!/^\d+$/.test(minute ?? '') || !/^\d+$/.test(hour ?? '')) return cron

  const at = `at ${hour?.padStart(2, '0')}:${minute?.padStart(2, '0')}`
  if (day === '*' && weekday === '*') return `every day ${at}`
  if (day === '*' && weekday === '1-5') return `Monday to Friday ${at}`
  if (day === '*' && /^[0-7]$/.test(weekday)) return `every ${days[Number(weekday)]} ${at}`
  if (weekday === '*' && day === '$') return `on the last day of the month ${at}`
  if (weekday === '*' && /^\d+$/.test(day ?? '')) return `on day ${day} of the month ${at}`

  return cron
}

function ofHour(minute: string): string | undefined {
  const step = /^\*\/(\d+)$/.exec(minute)
  if (minute === '*') return 'every minute'
  if (step) return `every ${step[1]} minutes`
  if (/^\d+$/.test(minute)) return minute === '0' ? 'every hour' : `every hour at minute ${minute}`

  return undefined
}

/** Returns a duration in milliseconds as "1.2 s". */
export function duration(ms: number | null): string {
  if (ms === null) return ''
  if (ms < 1000) return `${Math.round(ms)} ms`

  return ms < 120_000 ? `${(ms / 1000).toFixed(1)} s` : `${Math.round(ms / 60_000)} min`
}
