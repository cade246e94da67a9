import { expect, test } from 'vitest'
import { parseHeaders, readAnswer, versionText } from './call'

test('headers are lines', () => {
  expect(parseHeaders('X-A: 1\n\n  content-type: text/plain ')).toEqual([['X-A', '1'], ['content-type', 'text/plain']])
  expect(parseHeaders('X-Empty:')).toEqual([['X-Empty', '']])
  expect(parseHeaders('no header')).toMatch(/Name: value/)
  expect(parseHeaders('bad name: x')).toMatch(/Name: value/)
})

test('a long answer is cut', async () => {
  const answer = await readAnswer(new Response('x'.repeat(100_001), { status: 201 }), performance.now())
  expect([answer.status, answer.body.length, answer.body.at(-1)]).toEqual([201, 100_001, '…'])
})

test('a version is short', () => expect(versionText('0123456789abcdef')).toBe('0123456789ab'))
