import { beforeEach, expect, test, vi } from 'vitest'
import { accessToken, currentUser, hasSessionEnded, refresh, restore, signIn, signOut } from './session'

const minute = 60_000
let uses = 0 // refresh tokens used; -1: the session has ended
vi.stubGlobal('navigator', {}) // without locks, as on a page without https

function answer(path: string, method = 'GET'): Response {
  if (method === 'DELETE') return Response.json({ success: true })
  if (path.endsWith('/refresh') && uses < 0) return Response.json({ metadata: { code: 'invalid_token' } }, { status: 401 })

  uses++
  return Response.json({ content: { uuid: 'u', username: 'ada' },
    metadata: { token: `t${uses}`, expiresAt: new Date(Date.now() + 15 * minute).toISOString() } })
}

beforeEach(async () => {
  uses = 0
  vi.stubGlobal('fetch', vi.fn(async (path: string, init?: RequestInit) => answer(path, init?.method)))
  await signOut()
})

test('concurrent requests share one refresh', async () => {
  await signIn({ email: 'a', password: 'b' })
  expect(await accessToken()).toBe('t1')

  expect(await Promise.all([refresh('t1'), refresh('t1'), refresh('t1')])).toEqual(['t2', 't2', 't2'])
})

test('a session that ended signs out', async () => {
  await signIn({ email: 'a', password: 'b' })
  uses = -1

  expect(await refresh('t1')).toBe('')
  expect(currentUser()).toBeNull()
  expect(hasSessionEnded()).toBe(true) // so the screen stays, and asks for the password
  expect(await restore()).toBe(false)
})

test('a server that is away does not sign out', async () => {
  await signIn({ email: 'a', password: 'b' })
  vi.stubGlobal('fetch', vi.fn(async () => Promise.reject(new TypeError('offline'))))

  await expect(refresh('t1')).rejects.toMatchObject({ status: 0 })
  expect(currentUser()?.username).toBe('ada')
})

test('only the server ends a session: not a sign-out, and not a visit without one', async () => {
  uses = -1
  expect(await restore()).toBe(false)
  expect(hasSessionEnded()).toBe(false)

  uses = 0
  await signIn({ email: 'a', password: 'b' })
  await signOut()
  expect(hasSessionEnded()).toBe(false)
})
