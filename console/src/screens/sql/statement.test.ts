import { expect, test } from 'vitest'
import { mask, parametersOf, rangeAt, titleOf } from './statement'

test('parameters count outside of literals and comments only', () => {
  expect(parametersOf('select $1, $2')).toBe(2)
  expect(parametersOf("select '$3', \"$4\", $tag$ $5 $tag$ -- $6\n/* $7 */, $1")).toBe(1)
  expect(parametersOf('select 1')).toBe(0)
})

test('a masked text keeps its length and lines', () => {
  const text = "select 'a''b'\n-- x\nfrom t"
  expect(mask(text)).toHaveLength(text.length)
  expect(mask(text).split('\n')[2]).toBe('from t')
})

test('positions count characters, not code units', () => {
  const text = "select '📚', nope"
  expect(text.slice(rangeAt(text, 13).from, rangeAt(text, 13).to)).toBe('nope')
  expect(rangeAt('select', 99)).toEqual({ from: 6, to: 7 })
})

test('a tab is named by its first line', () => {
  expect(titleOf('\n-- Top authors\nselect 1')).toBe('Top authors')
  expect(titleOf('  ')).toBe('New query')
})
