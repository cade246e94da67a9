import { expect, test } from 'vitest'
import { parseRows } from './json'
import { encodeQuery, hasKeyset, headersOf, keyParameters, orderOf, pagePath, totalOf, type View } from './request'

const view: View = {
  project: 'P', schema: 'public', name: 'books', columns: [], key: ['id'], nullable: ['price'], filters: [], sort: [], as: '',
}
const [row] = parseRows('[{"id":9007199254740993,"a":"x,\\"y","b":2}]')

test('the first page sorts by the key', () => {
  expect(pagePath(view, { offset: 0 }, 200)).toBe('/projects/P/rest/v1/books?order=id&limit=200')
})

test('the next page begins after the last row, without losing digits', () => {
  expect(pagePath(view, { after: row! }, 200)).toBe('/projects/P/rest/v1/books?order=id&id=gt.9007199254740993&limit=200')
  expect(pagePath(view, { before: row! }, 200))
    .toBe('/projects/P/rest/v1/books?order=id.desc&id=lt.9007199254740993&limit=200')
})

test('a composite key compares column by column', () => {
  const path = pagePath({ ...view, key: ['a', 'b'] }, { after: row! }, 10)
  expect(new URL(path, 'http://x').searchParams.get('or')).toBe('(a.gt."x,\\"y",and(a.eq."x,\\"y",b.gt."2"))')
})

test('other orders have the key as their end', () => {
  const sorted = { ...view, sort: [{ column: 'price', descending: true }] }
  expect(hasKeyset(sorted)).toBe(false)
  expect(pagePath(sorted, { offset: 400 }, 200))
    .toBe('/projects/P/rest/v1/books?order=price.desc.nullslast,id.desc&limit=200&offset=400')
  expect(hasKeyset({ key: ['id'], sort: [{ column: 'id', descending: true }] })).toBe(true)
  expect(hasKeyset({ key: [], sort: [] })).toBe(false)
  expect(orderOf({ key: ['a', 'b'], sort: [{ column: 'b', descending: false }] }).map((s) => s.column)).toEqual(['b', 'a'])
})

test('names and filters are encoded', () => {
  const odd = { ...view, name: 'a/"b" 📚', columns: ['a b', 'c'], filters: [{ column: 'c', operator: 'eq' as const, value: 'x&y' }] }
  expect(pagePath(odd, { offset: 0 }, 1)).toBe(
    '/projects/P/rest/v1/a%2F%22b%22%20%F0%9F%93%9A?select=%22a%20b%22,c&c=eq.x%26y&order=id&limit=1')
})

test('keyParameters choose rows', () => {
  expect(keyParameters(['id'], [row!])).toEqual([['id', 'eq.9007199254740993']])
  expect(keyParameters(['id'], [row!, row!])).toEqual([['id', 'in.("9007199254740993","9007199254740993")']])
  expect(encodeQuery(keyParameters(['id', 'b'], [row!]))).toBe('id=eq.9007199254740993&b=eq.2')
})

test('headersOf names schema and caller', () => {
  expect(headersOf({ schema: 'shop', as: 'anon' }, true))
    .toEqual({ 'Accept-Profile': 'shop', 'Content-Profile': 'shop', 'X-Socle-As': 'anon' })
  expect(headersOf({ schema: 'public', as: '' })).toEqual({})
})

test('totalOf reads Content-Range', () => {
  expect(totalOf('0-99/5000')).toBe(5000)
  expect(totalOf('0-99/*')).toBeNull()
  expect(totalOf(null)).toBeNull()
})
