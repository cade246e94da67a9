import { expect, test } from 'vitest'
import { jsonOf, parseExact, plain, textOf } from './exact'

const cells = (text: string) => (parseExact(text) as never[]).map((v) => textOf(v))

test('numbers keep their digits', () => {
  expect(cells('[9007199254740993, 1.10, -2e-7, 0, "12", null, true]'))
    .toEqual(['9007199254740993', '1.10', '-2e-7', '0', '12', null, 'true'])
})

test('numbers within JSON keep theirs, and texts with quotes are texts', () => {
  expect(cells('[{"a": [1.0, {"b": 12345678901234567890}]}, "a \\"7\\" \\\\", "\\\\"]'))
    .toEqual(['{"a": [1.0, {"b": 12345678901234567890}]}', 'a "7" \\', '\\'])
})

test('values become plain for computing', () => {
  expect(plain(parseExact('{"a": [1, {"b": 0.25}], "c": "1"}'))).toEqual({ a: [1, { b: 0.25 }], c: '1' })
})

test('JSON is indented on demand', () => {
  expect(jsonOf(parseExact('{"a": [1.0], "b": {}}'), '\n')).toBe('{\n  "a": [\n    1.0\n  ],\n  "b": {}\n}')
})
