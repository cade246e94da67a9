/** Texts of answers. */

/** Returns an answer as people read it. A file is the last part of its location. */
export function answerText(value: unknown, type = ''): string {
  if (value === null || value === undefined) return ''
  if (typeof value === 'boolean') return value ? 'yes' : 'no'
  if (Array.isArray(value)) return value.map((v) => answerText(v)).join('; ')
  if (typeof value === 'object') {
    const name = (value as { name?: unknown; fullFileName?: unknown }).fullFileName ?? (value as { name?: unknown }).name
    return typeof name === 'string' ? name : JSON.stringify(value)
  }

  const text = String(value)
  return type === 'file' ? decoded(text.slice(text.lastIndexOf('/') + 1)) : text
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/** Returns the days between the first and the last one, each with its count. */
export function filledDays(days: { day: string; count: number }[]): { day: string; count: number }[] {
  if (days.length === 0) return []

  const counts = new Map(days.map((d) => [d.day, d.count]))
  const sorted = [...counts.keys()].sort()
  const last = Date.parse(sorted[sorted.length - 1]!)
  const filled: { day: string; count: number }[] = []
  for (let at = Math.max(Date.parse(sorted[0]!), last - 365 * 86_400_000); at <= last; at += 86_400_000) {
    const day = new Date(at).toISOString().slice(0, 10)
    filled.push({ day, count: counts.get(day) ?? 0 })
  }

  return filled
}
