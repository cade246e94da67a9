import { expect, test } from 'vitest'
import { changes, requestNames, type Spec } from './specs'

const specs: Spec[] = [
  { name: 'sign_up', label: 'Sign-up', kind: 'check' },
  { name: 'max_rows', label: 'Rows', kind: 'number' },
  { name: 'urls', label: 'URLs', kind: 'list' },
  { name: 'max_bytes', label: 'Bytes', kind: 'size' },
]
const values = { sign_up: true, max_rows: 10, urls: ['a'], max_bytes: 1024 }

test('only what changed is sent', () => {
  expect(changes(specs, {}, values)).toEqual({})
  expect(changes(specs, { sign_up: true, max_rows: '10' }, values)).toEqual({})
  expect(changes(specs, { sign_up: false, max_rows: '0', urls: 'a\n\n b ', max_bytes: '2k' }, values))
    .toEqual({ sign_up: false, max_rows: 0, urls: ['a', 'b'], max_bytes: 2048 })
})

test('what is no number is refused with the name of its field', () => {
  expect(() => changes(specs, { max_rows: '' }, values)).toThrow('Rows')
  expect(() => changes(specs, { max_bytes: 'much' }, values)).toThrow('Bytes')
})

test('requestNames', () => {
  expect(requestNames({ siteUrl: 'x', signUp: true })).toEqual({ site_url: 'x', sign_up: true })
})
