import { expect, test } from 'vitest'
import { checksumOf, compare, merged, normalized, parseName, stateOf, versionOf, type Applied } from './files'

const applied = (version: string, checksum: string, durationMs: number | null = 1): Applied => ({
  version, name: '', checksum, durationMs, appliedAt: '', appliedBy: '',
})

test('names have a version and a name', () => {
  expect(parseName('db/20240105_add_books.sql')).toEqual({ version: '20240105', name: 'add_books' })
  expect(parseName('20240105101112-init.sql')).toEqual({ version: '20240105101112', name: 'init' })
  expect(parseName('seed.sql')).toBeNull()
})

test('versions are in the order of a folder', () => {
  const versions = ['20240106120000', '20240105', '20240104120000', '001']
  expect(versions.sort(compare)).toEqual(['001', '20240104120000', '20240105', '20240106120000'])
})

test('a file is compared with what is applied', () => {
  const file = { version: '2', name: '', sql: 'x' }
  expect(stateOf(file, 'a', [])).toBe('new')
  expect(stateOf(file, 'a', [applied('2', 'a')])).toBe('applied')
  expect(stateOf(file, 'a', [applied('2', 'b')])).toBe('changed')
  expect(stateOf(file, 'a', [applied('3', 'b')])).toBe('late')
  expect(stateOf(file, 'a', [applied('2', 'a', null)])).toBe('unfinished')
  expect(stateOf(file, null, [applied('2', 'a')])).toBe('unknown')
})

test('checksums are of the normalized text', async () => {
  expect(await checksumOf(normalized('\ufeffselect 1\r\n')))
    .toBe('8903abffd68710879da59014708c6187f8e839fadc2bdf94ae73a036aa591623')
})

test('files of the same version replace each other', () => {
  const old = [{ version: '2', name: 'b', sql: '' }]
  expect(merged(old, [{ version: '2', name: 'c', sql: '' }, { version: '1', name: 'a', sql: '' }]).map((f) => f.name))
    .toEqual(['a', 'c'])
  expect(versionOf(new Date('2026-11-27T09:08:07.006Z'))).toBe('20261127090807')
})
