import { describe, expect, test } from 'vitest'
import { ApiError, failureOf } from './failure'

const answer = (status: number, headers: Record<string, string> = {}) => new Response(null, { status, headers })

describe('failureOf', () => {
  test('reads the platform envelope', () => {
    const failure = failureOf(answer(422), {
      content: 'null', success: false, errors: ['Validation failed'],
      metadata: { code: 'required', detail: 'Name is required.', requestId: 'r1',
        fields: [{ field: 'name', code: 'required', message: 'is required' }] },
    })

    expect(failure).toMatchObject({ status: 422, code: 'required', message: 'Name is required.', requestId: 'r1' })
    expect(failure.field('name')).toBe('is required')
    expect(failure.field('other')).toBeUndefined()
  })

  test('reads the rows API and the auth API', () => {
    expect(failureOf(answer(403, { 'X-Request-Id': 'r2' }), { code: '42501', message: 'permission denied' }))
      .toMatchObject({ status: 403, code: '42501', message: 'permission denied', requestId: 'r2' })
    expect(failureOf(answer(429, { 'Retry-After': '7' }), { code: 429, msg: 'too many' }))
      .toMatchObject({ message: 'too many', retryAfter: 7 })
  })

  test('says something without a body', () => {
    expect(failureOf(answer(502), null).message).toBe('Status 502')
    expect(new ApiError(0).message).toBe('The server does not answer.')
  })
})
