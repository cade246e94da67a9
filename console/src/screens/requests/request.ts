/** What a request of the log says in words, and how its list is narrowed. */

import type { Schemas } from '../../api/client'

export type Request = Schemas['Request']

export const filterNames = [
  'status', 'method', 'table', 'function', 'route', 'code', 'role', 'user', 'userKind', 'since', 'from', 'to',
] as const

export type Filters = Record<(typeof filterNames)[number], string>

export const periods = { '15m': 15, '1h': 60, '24h': 1440, '7d': 10_080 } as const // minutes

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i

/** Reports whether a text can be the id of a request or a user. */
export const isUUID = (text: string) => uuid.test(text)

/** Returns the query of the API for the filters of the URL. */
export function queryOf(f: Filters, now = Date.now()): Record<string, string> {
  const query: Record<string, string> = {}
  for (const name of ['method', 'table', 'function', 'route', 'code', 'role'] as const) {
    if (f[name] !== '') query[name] = f[name]
  }
  if (/^([1-5]xx|[1-5]\d\d)$/.test(f.status)) query.status = f.status
  if (isUUID(f.user)) query[{ platform: 'userUuid', key: 'keyUuid' }[f.userKind] ?? 'endUserUuid'] = f.user

  const minutes = periods[f.since as keyof typeof periods]
  if (minutes !== undefined) query.from = new Date(now - minutes * 60_000).toISOString()
  else if (f.from !== '') query.from = new Date(f.from).toISOString()
  if (f.to !== '' && minutes === undefined) query.to = new Date(f.to).toISOString()

  return query
}

/** Returns microseconds as "3.9 ms". */
export function microseconds(n: number): string {
  if (n < 1000) return `${n} µs`
  if (n < 1_000_000) return `${(n / 1000).toFixed(n < 10_000 ? 1 : 0)} ms`

  return `${(n / 1_000_000).toFixed(1)} s`
}

/** Returns the value that a part of sorted numbers does not exceed, such as 0.99 of them; 0 for none. */
export function quantile(sorted: number[], part: number): number {
  return sorted[Math.max(0, Math.ceil(sorted.length * part) - 1)] ?? 0
}

export function toneOf(status: number): 'success' | 'warning' | 'danger' | 'neutral' {
  if (status >= 500) return 'danger'
  if (status >= 400) return 'warning'

  return status >= 200 && status < 300 ? 'success' : 'neutral'
}

/** Names the caller of a request. */
export function callerOf(r: Request): string {
  switch (r.caller) {
    case 'user':
      return r.userName ?? 'deleted user'
    case 'key':
      return `key ${r.keyName ?? 'since deleted'}`
    case 'token':
      return `user ${r.endUserUuid?.slice(0, 8) ?? 'of the application'}`
    case 'anonymous':
      return 'anonymous'
  }
}

export interface Bucket {
  from: number
  good: number
  failed: number
}

/** Counts loaded requests in equal spans of time, oldest first. */
export function buckets(requests: Pick<Request, 'at' | 'status'>[], count: number): Bucket[] {
  const times = requests.map((r) => Date.parse(r.at))
  if (times.length === 0) return []

  const first = Math.min(...times)
  const span = Math.max(1, (Math.max(...times) - first + 1) / count)
  const all = Array.from({ length: count }, (_, i): Bucket => ({ from: first + i * span, good: 0, failed: 0 }))
  requests.forEach((r, i) => {
    const bucket = all[Math.min(count - 1, Math.floor((times[i]! - first) / span))]!
    if (r.status >= 400) bucket.failed++
    else bucket.good++
  })

  return all
}
