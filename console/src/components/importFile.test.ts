import { expect, test } from 'vitest'
import { formatOf, tableNameOf } from './importFile'

test.each([
  ['a.CSV', 'csv'], ['a.txt', 'csv'], ['a.ndjson', 'jsonl'], ['a.xlsx', 'xlsx'], ['a.pdf', ''], ['a', ''], ['a.constructor', ''],
])('formatOf %s', (name, want) => {
  expect(formatOf(name)).toBe(want)
})

test.each([
  ['Müller & Söhne 2026.csv', 'muller_sohne_2026'], ['2026 sales.xlsx', 't_2026_sales'], ['📚.json', ''],
])('tableNameOf %s', (name, want) => {
  expect(tableNameOf(name)).toBe(want)
})
