import { expect, test } from 'vitest'
import { indent, isNull, parseRows, textOf, writeRows } from './json'

test('parseRows keeps the text of numbers', () => {
  const [row] = parseRows('[{"big":9007199254740993,"price":1.10,"e":-1.5e+300}]')
  expect(row!.big).toBe('9007199254740993')
  expect(row!.price).toBe('1.10')
  expect(row!.e).toBe('-1.5e+300')
})

test('parseRows reads all kinds of values', () => {
  const rows = parseRows('[{"a":null,"b":true,"c":"x\\"},]","d":{"n": [1, "]}"]},"e":[]}, \n {"a b":1}, {}]')
  expect({ ...rows[0] }).toEqual({ a: 'null', b: 'true', c: '"x\\"},]"', d: '{"n": [1, "]}"]}', e: '[]' })
  expect({ ...rows[1] }).toEqual({ 'a b': '1' })
  expect(Object.keys(rows[2]!)).toEqual([])
  expect(parseRows(' [ ] ')).toEqual([])
})

test('parseRows takes names such as __proto__', () => {
  expect(parseRows('[{"__proto__":"x"}]')[0]!['__proto__']).toBe('"x"')
})

test.each(['', '[', '[{', '[{"a"', '[{"a":}]', '[{"a":"x]', '{"a":1}', '[{"a":[1]'])('parseRows refuses %s', (text) => {
  expect(() => parseRows(text)).toThrow(SyntaxError)
})

test('textOf decodes texts only', () => {
  expect(textOf('"tab\\tand \\u00df"')).toBe('tab\tand ß')
  expect(textOf('12.50')).toBe('12.50')
  expect(isNull('null')).toBe(true)
  expect(isNull('"null"')).toBe(false)
})

test('indent keeps numbers and texts', () => {
  expect(indent('{"a":12345678901234567890,"b":[1.10,"x, {y}"],"c":{},"d":[ ]}')).toBe(
    '{\n  "a": 12345678901234567890,\n  "b": [\n    1.10,\n    "x, {y}"\n  ],\n  "c": {},\n  "d": []\n}')
})

test('writeRows gives back what came', () => {
  const rows = parseRows('[{"a":1.10,"b":"x"},{"a":null}]')
  expect(writeRows(rows, ['a', 'b'])).toBe('[{"a": 1.10, "b": "x"},\n {"a": null}]')
})
