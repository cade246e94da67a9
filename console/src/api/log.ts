/** The requests that the console made, for people who learn the API by clicking. */

export interface Recorded {
  id: number
  at: Date
  method: string
  path: string // with query
  headers: [string, string][]
  body: string
  status: number
}

const kept = 50
let requests: readonly Recorded[] = []
let lastID = 0
const listeners = new Set<() => void>()

/** Returns the latest requests, newest first. */
export const recorded = () => requests

export function subscribe(f: () => void): () => void {
  listeners.add(f)
  return () => listeners.delete(f)
}

export function record(r: { method: string; url: string; headers: Headers; body: string; status: number }): void {
  const { pathname, search } = new URL(r.url)
  const headers = [...r.headers].filter(([name]) => name !== 'authorization')
  const entry = { id: ++lastID, at: new Date(), method: r.method, path: pathname + search, headers, body: withoutSecrets(r.body),
    status: r.status }
  requests = [entry, ...requests].slice(0, kept)
  listeners.forEach((f) => f())
}

/** Members of bodies that are shown once, or never. */
const secret = /^(secret|password|new_?password|current_?password|token|refresh_?token)$/i

/** Replaces secrets in a body of JSON; the log keeps and shows none. */
function withoutSecrets(body: string): string {
  if (body === '' || !/secret|password|token/i.test(body)) return body

  try {
    return JSON.stringify(JSON.parse(body, (name, value: unknown) => (secret.test(name) && typeof value === 'string' ? '…' : value)))
  } catch {
    return body
  }
}

/** Returns a request as a curl command. $TOKEN stands for an access token. */
export function curl(r: Recorded, origin: string): string {
  const parts = ['curl']
  if (r.method !== 'GET') parts.push('-X', r.method)
  parts.push(quote(origin + r.path), '-H', '"Authorization: Bearer $TOKEN"')
  for (const [name, value] of r.headers) parts.push('-H', quote(`${name}: ${value}`))
  if (r.body !== '') parts.push('-d', quote(r.body))

  return parts.join(' ')
}

function quote(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`
}
