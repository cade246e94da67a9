import { expect, test } from 'vitest'
import { parseMembers, patchOf, titleOf } from './account'

test('a title is the address, the number, or the UUID', () => {
  const account = { email: '', phone: '', uuid: '0123456789ab', isAnonymous: false }

  expect(titleOf({ ...account, email: 'a@b.c', phone: '49170' })).toBe('a@b.c')
  expect(titleOf({ ...account, phone: '49170' })).toBe('+49170')
  expect(titleOf(account)).toBe('0123456789ab')
  expect(titleOf({ ...account, isAnonymous: true })).toBe('Anonymous 01234567')
})

test('only JSON objects are metadata', () => {
  expect(parseMembers('{"a": 1}')).toEqual({ a: 1 })
  expect(parseMembers(' ')).toEqual({})
  expect(parseMembers('[1]')).toMatch('JSON object')
  expect(parseMembers('{"a":')).toMatch('Not valid JSON')
})

test('a patch sets what changed and removes with null', () => {
  expect(patchOf({ a: 1, b: { c: 2 }, d: 3 }, { a: 1, b: { c: 4 }, e: 5 })).toEqual({ b: { c: 4 }, e: 5, d: null })
  expect(patchOf({ a: [1] }, { a: [1] })).toEqual({})
})
