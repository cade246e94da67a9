import { expect, test } from 'vitest'
import { parameterOf, quoteName, readFilters, readSort, writeFilters, writeSort, type Filter } from './filters'

test('filters survive the URL', () => {
  const filters: Filter[] = [
    { column: 'price', operator: 'gt', value: '9007199254740993' },
    { column: 'a b', operator: 'not.ilike', value: 'x=1&y. ß' },
    { column: 'note', operator: 'null', value: '' },
    { column: 'note', operator: 'eq', value: '' },
  ]
  expect(readFilters(writeFilters(filters))).toEqual(filters)
  expect(readFilters('price=gtx.1&price=&x')).toEqual([])
})

test('sorting survives the URL', () => {
  const sort = [{ column: 'a,b.desc', descending: true }, { column: 'c', descending: false }]
  expect(readSort(writeSort(sort))).toEqual(sort)
  expect(readSort('')).toEqual([])
})

test.each([
  [{ column: 'price', operator: 'gte', value: '1.5' }, ['price', 'gte.1.5']],
  [{ column: 'title', operator: 'ilike', value: '50%_' }, ['title', 'ilike.*50\\%\\_*']],
  [{ column: 'mood', operator: 'in', value: 'ok, say "hi"' }, ['mood', 'in.("ok","say \\"hi\\"")']],
  [{ column: 'a b', operator: 'notnull', value: 'x' }, ['"a b"', 'not.is.null']],
  [{ column: 'order', operator: 'eq', value: '' }, ['"order"', 'eq.']],
] as [Filter, [string, string]][])('parameterOf %j', (filter, want) => {
  expect(parameterOf(filter)).toEqual(want)
})

test('quoteName escapes', () => {
  expect(quoteName('say "hi" \\')).toBe('"say \\"hi\\" \\\\"')
  expect(quoteName('plain_1')).toBe('plain_1')
  expect(quoteName('ß')).toBe('"ß"')
})
