/** The access token lives in memory; the refresh token in a cookie that scripts cannot read. */

import { ApiError, failureOf } from './failure'
import type { components } from './schema'

export type User = components['schemas']['User']

export interface Credentials {
  email: string
  password: string
  code?: string
}

const path = '/console/session'
const earlier = 30_000 // refresh this long before the token expires, in ms

let token = ''
let expiresAt = 0
let current: User | null = null
let unclaimed = false
let ended = false
const listeners = new Set<() => void>()

/** Returns the signed-in user, or null. */
export const currentUser = () => current

/** Reports whether the install has no administrator yet, as far as the server has said. */
export const hasNoAdministrator = () => unclaimed

/** Reports whether the server ended the session, rather than the user. */
export const hasSessionEnded = () => ended

/** Calls f after each sign-in and sign-out; returns the function that stops it. */
export function subscribe(f: () => void): () => void {
  listeners.add(f)
  return () => listeners.delete(f)
}

export async function signIn(credentials: Credentials): Promise<void> {
  keep(await request('POST', path, credentials))
}

export async function signOut(): Promise<void> {
  ended = false
  try {
    await request('DELETE', path)
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== 401) throw error // 401: it had ended already
  } finally {
    drop()
  }
}

/** Restores the session of an earlier visit. Reports whether there is one. */
export async function restore(): Promise<boolean> {
  return (await accessToken()) !== ''
}

/** Returns a valid access token, or "" without a session. */
export async function accessToken(): Promise<string> {
  if (token !== '' && Date.now() < expiresAt - earlier) return token

  return refresh(token)
}

/** Takes a new access token instead of one that the server refused. */
export async function refresh(refused: string): Promise<string> {
  // One tab at a time: the server replaces the refresh token with each use.
  return exclusively(async () => {
    if (token !== refused && Date.now() < expiresAt - earlier) return token

    try {
      keep(await request('POST', `${path}/refresh`, {}))
    } catch (error) {
      if (!(error instanceof ApiError) || error.status !== 401) throw error
      unclaimed = error.code === 'no_administrator'
      ended = current !== null
      drop()
    }

    return token
  })
}

let last: Promise<unknown> = Promise.resolve()

function exclusively<T>(f: () => Promise<T>): Promise<T> {
  if ('locks' in navigator) return navigator.locks.request('socle-session', f) as Promise<T>

  const next = last.then(f, f) // a page without https has no locks across tabs
  last = next.catch(() => undefined)

  return next
}

interface Answer {
  content: User
  metadata: { token: string; expiresAt: string }
}

async function request(method: string, to: string, body?: unknown): Promise<Answer | null> {
  const response = await fetch(to, {
    method,
    headers: { 'Content-Type': 'application/json' },
    body: body === undefined ? null : JSON.stringify(body),
  }).catch((cause: unknown) => {
    throw new ApiError(0, undefined, cause)
  })
  const answer = await response.json().catch(() => null)
  if (!response.ok) throw failureOf(response, answer)

  return answer
}

function keep(answer: Answer | null): void {
  if (!answer) return

  ended = false
  token = answer.metadata.token
  expiresAt = Date.parse(answer.metadata.expiresAt)
  if (current?.uuid !== answer.content.uuid || current.username !== answer.content.username) {
    current = answer.content
    listeners.forEach((f) => f())
  }
}

function drop(): void {
  token = ''
  expiresAt = 0
  if (current !== null) {
    current = null
    listeners.forEach((f) => f())
  }
}
