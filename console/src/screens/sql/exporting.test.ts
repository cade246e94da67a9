import { expect, test } from 'vitest'
import { parseExact, type Exact } from '../../components/exact'
import { csvOf, jsonRowsOf } from './exporting'

const result = {
  command: 'SELECT 2', rowCount: 2, truncated: false,
  columns: [{ name: 'a', type: 'bigint' }, { name: 'a', type: 'text' }],
  rows: parseExact('[[9007199254740993, "x,\\"y\\""], [null, ""]]') as Exact[][],
}

test('CSV tells null from empty text', () => {
  expect(csvOf(result)).toBe('a,a\r\n9007199254740993,"x,""y"""\r\n,""\r\n')
})

test('JSON keeps digits and both columns of one name', () => {
  expect(jsonRowsOf(result)).toBe('[\n  {"a": 9007199254740993, "a_2": "x,\\"y\\""},\n  {"a": null, "a_2": ""}\n]\n')
  expect(jsonRowsOf({ ...result, rows: [] })).toBe('[]\n')
})
