import { expect, test } from 'vitest'
import { draftOf, encode, isComparable } from './edit'
import type { Kind } from './types'

const value = (kind: Kind, text: string) => encode({ kind, notNull: false }, { mode: 'value', text })

test.each([
  ['number', ' 9007199254740993.10 ', '"9007199254740993.10"'],
  ['number', 'NaN', '"NaN"'],
  ['number', '-Infinity', '"-Infinity"'],
  ['number', '1e-7', '"1e-7"'],
  ['text', '', '""'],
  ['text', ' a\n', '" a\\n"'],
  ['json', ' {"a": 12345678901234567890} ', '{"a": 12345678901234567890}'],
  ['json', '"x"', '"x"'],
  ['array', '["a", null]', '["a", null]'],
  ['array', '{a,b}', '"{a,b}"'],
  ['bytea', '\\x00FF', '"\\\\x00FF"'],
  ['timestamp', 'infinity', '"infinity"'],
  ['enum', 'ok', '"ok"'],
] as [Kind, string, string][])('encode %s %j', (kind, text, raw) => {
  expect(value(kind, text)).toEqual({ raw })
})

test.each([
  ['number', '1,5'], ['number', ''], ['json', '{"a":'], ['array', '1'], ['array', '["a"'], ['bytea', 'abc'], ['date', ' '],
] as [Kind, string][])('encode refuses %s %j', (kind, text) => {
  expect(value(kind, text)).toHaveProperty('error')
})

test('null and default', () => {
  expect(encode({ kind: 'number', notNull: false }, { mode: 'null', text: 'x' })).toEqual({ raw: 'null' })
  expect(draftOf('null', 'text')).toEqual({ mode: 'null', text: '' })
  expect(draftOf('"null"', 'text')).toEqual({ mode: 'value', text: 'null' })
  expect(draftOf('{"a":1.10}', 'json').text).toBe('{\n  "a": 1.10\n}')
})

test('isComparable leaves out what does not compare exactly', () => {
  expect(isComparable('number', 'numeric(12,2)', '1.5')).toBe(true)
  expect(isComparable('number', 'double precision', '1.5')).toBe(false)
  expect(isComparable('json', 'jsonb', '{}')).toBe(false)
  expect(isComparable('text', 'text', '"a"')).toBe(true)
  expect(isComparable('text', 'text', `"${'x'.repeat(900)}"`)).toBe(false)
})
