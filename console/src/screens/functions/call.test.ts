import { expect, test } from 'vitest'
import { callOf, rpcBody, signatureOf, type FunctionInfo } from './call'

const add: FunctionInfo = {
  schema: 'public', name: 'Add', kind: 'function', arguments: 'integer, jsonb', returnType: 'integer', language: 'sql',
  parameters: [{ name: 'a', type: 'integer' }, { name: 'b', type: 'jsonb' }], volatility: 'volatile',
  securityDefiner: false, execute: [],
}

test('a call names its arguments and casts texts', () => {
  expect(callOf(add)).toBe('select * from public."Add"(a => $1::text::integer, b => $2::text::jsonb)')
  expect(signatureOf(add)).toBe('public."Add"(integer, jsonb)')
})

test('a request has JSON where the argument is JSON', () => {
  expect(rpcBody(add, ['1', '{"x": 1}'])).toEqual({ a: '1', b: { x: 1 } })
  expect(rpcBody(add, [null, null])).toEqual({ a: null, b: null })
})
