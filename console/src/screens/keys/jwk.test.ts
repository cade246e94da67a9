import { expect, test } from 'vitest'
import { parseJWK } from './jwk'

const key = { kty: 'EC', crv: 'P-256', x: 'a', y: 'b' }

test('a key, alone or in a set', () => {
  expect(parseJWK(JSON.stringify(key))).toEqual(key)
  expect(parseJWK(JSON.stringify({ keys: [key] }))).toEqual(key)
})

test.each([
  ['', /not JSON/],
  ['[]', /kty/],
  ['null', /kty/],
  ['{"kty":"oct"}', /kty/],
  ['{"keys":[]}', /0 keys/],
  [JSON.stringify({ ...key, d: 'secret' }), /private/],
])('%s is refused', (text, want) => {
  expect(() => parseJWK(text)).toThrow(want)
})
