import { expect, test } from 'vitest'
import { parseSize, parseTypes, sizeText } from './containers'

test('sizes have units', () => {
  expect(parseSize('50 MB')).toBe(50 * 1024 * 1024)
  expect(parseSize('1.5k')).toBe(1536)
  expect(parseSize('1024')).toBe(1024)
  expect(parseSize('7 b')).toBe(7)
  expect(parseSize('many')).toBeUndefined()
})

test('a written size is read as the same number', () => {
  for (const n of [0, 1, 1024, 1536, 5_000_000, 50 * 1024 ** 2, 3 * 1024 ** 4]) expect(parseSize(sizeText(n))).toBe(n)
  expect(sizeText(2048)).toBe('2 kB')
})

test('media types are separated by lines or commas', () => {
  expect(parseTypes('image/*, text/plain\napplication/pdf')).toEqual(['image/*', 'text/plain', 'application/pdf'])
  expect(parseTypes(' ')).toEqual([])
})
