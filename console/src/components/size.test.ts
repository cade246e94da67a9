import { expect, test } from 'vitest'
import { exactSize, parseSize } from './size'

test.each([
  ['512', 512], ['1 B', 1], ['10 GB', 10 * 1024 ** 3], ['1.5k', 1536], ['2TiB', 2 * 1024 ** 4], ['0', 0],
  ['', null], ['ten', null], ['-1', null], ['1 PB', null], ['1e3', null], ['99999999 TB', null],
])('parseSize(%j)', (text, want) => {
  expect(parseSize(text)).toBe(want)
})

test.each([[0, '0 B'], [1024, '1 KiB'], [1536, '1536 B'], [1024 ** 4, '1 TiB'], [1024 ** 5, '1024 TiB']])(
  'exactSize(%d)', (bytes, want) => {
    expect(exactSize(bytes)).toBe(want)
    expect(parseSize(want)).toBe(bytes)
  })
