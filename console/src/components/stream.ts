/** Changes of rows as the server sends them: Server-Sent Events, which continue at a cursor. */

import { send } from '../api/client'
import { ApiError, failureOf } from '../api/failure'
import { jsonOf, parseExact, textOf, type Exact } from './exact'

export interface StreamEvent {
  id: string // cursor
  kind: string
  data: string
}

/** Parses a body of Server-Sent Events. An event without a kind only has a new cursor. */
export async function* eventsOf(body: ReadableStream<Uint8Array>): AsyncGenerator<StreamEvent> {
  const reader = body.pipeThrough(new TextDecoderStream() as ReadableWritablePair<string, Uint8Array>).getReader()
  let rest = ''
  let event: StreamEvent = { id: '', kind: '', data: '' }
  let isEmpty = true

  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return

      const lines = (rest + value).split('\n')
      rest = lines.pop() ?? ''
      for (const line of lines) {
        if (line === '') {
          if (!isEmpty) yield event
          event = { id: '', kind: '', data: '' }
          isEmpty = true
          continue
        }

        const cut = line.indexOf(': ')
        const text = line.slice(cut + 2)
        isEmpty = false
        if (line.startsWith('id: ')) event.id = text
        if (line.startsWith('event: ')) event.kind = text
        if (line.startsWith('data: ')) event.data += (event.data === '' ? '' : '\n') + text
      }
    }
  } finally {
    await reader.cancel().catch(() => undefined)
  }
}

export interface Change {
  cursor: string
  kind: string // INSERT, UPDATE, DELETE or TRUNCATE
  schema: string
  table: string
  at: string
  record: string // JSON; '' for none
  old: string
  cut: boolean // large columns are left out
}

/** What a follower is told. */
export interface Listener {
  onState: (state: 'connecting' | 'following' | 'lost', why?: string) => void
  onChange: (change: Change) => void
  onGap: () => void // changes are missing: read the rows again
}

export interface Followed {
  schema: string
  table: string // '' for all tables of the schema
  event?: string
  filter?: string
  as?: string
}

const firstPause = 1000 // ms
const longestPause = 30_000

/** Follows changes until the signal, and continues after an interruption where it was. */
export async function follow(project: string, f: Followed, listener: Listener, signal: AbortSignal): Promise<void> {
  let cursor = ''
  let pause = firstPause

  while (!signal.aborted) {
    listener.onState('connecting')
    try {
      const response = await open(project, f, cursor, signal)
      for await (const e of eventsOf(response)) {
        pause = firstPause
        if (e.id !== '') cursor = e.id
        if (e.kind === 'subscribed') listener.onState('following')
        else if (e.kind === 'resync') {
          listener.onState('following')
          listener.onGap()
        } else if (e.kind === 'error') throw new Error(messageOf(e.data))
        else if (e.kind !== '') listener.onChange(changeOf(e))
      }
      pause = firstPause // the server ends a stream now and then
    } catch (error) {
      if (signal.aborted) return
      listener.onState('lost', error instanceof Error ? error.message : String(error))
      if (error instanceof ApiError && error.status >= 400 && error.status < 500 && error.status !== 429) return
    }

    await new Promise((resolve) => setTimeout(resolve, pause))
    pause = Math.min(pause * 2, longestPause)
  }
}

async function open(project: string, f: Followed, cursor: string, signal: AbortSignal): Promise<ReadableStream<Uint8Array>> {
  const query = new URLSearchParams()
  if (f.schema !== 'public') query.set('schema', f.schema)
  if (f.table !== '') query.set('table', f.table)
  if (f.event) query.set('event', f.event)
  if (f.filter) query.set('filter', f.filter)

  const response = await send(`${location.origin}/projects/${project}/realtime/v1/changes?${query.toString()}`, {
    signal,
    headers: { ...(cursor !== '' && { 'Last-Event-ID': cursor }), ...(f.as && { 'X-Socle-As': f.as }) },
  })
  if (!response.ok || response.body === null) {
    throw failureOf(response, await response.json().catch(() => null))
  }

  return response.body
}

function changeOf(e: StreamEvent): Change {
  const { data } = parseExact(e.data) as { data: Record<string, Exact> }
  const json = (value: Exact | undefined) => (value === undefined ? '' : jsonOf(value))
  const text = (name: string) => textOf(data[name] ?? null) ?? ''

  return {
    cursor: e.id, kind: text('type'), schema: text('schema'), table: text('table'), at: text('commit_timestamp'),
    record: json(data.record), old: json(data.old_record), cut: Array.isArray(data.errors) && data.errors.length > 0,
  }
}

function messageOf(data: string): string {
  try {
    return (JSON.parse(data) as { message: string }).message
  } catch {
    return data
  }
}
