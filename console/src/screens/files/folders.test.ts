import { expect, test } from 'vitest'
import { entriesOf, normalFolder, previewKind, splitName, trail } from './folders'

test('folders come first', () => {
  const file = { name: 'a.txt', id: '1', updated_at: 't', metadata: { size: 3, mimetype: 'text/plain' } }
  const folder = { name: 'b', id: null, updated_at: null, metadata: null }

  expect(entriesOf([file, folder])).toEqual([
    { kind: 'folder', name: 'b' },
    { kind: 'file', name: 'a.txt', uuid: '1', size: 3, mimeType: 'text/plain', updatedAt: 't' },
  ])
})

test('names and folders', () => {
  expect(trail('a/b c/')).toEqual([['a', 'a/'], ['b c', 'a/b c/']])
  expect(trail('')).toEqual([])
  expect(normalFolder('/a//b')).toBe('a/b/')
  expect(normalFolder('/')).toBe('')
  expect(splitName('a/b/c.txt')).toEqual(['a/b/', 'c.txt'])
  expect(splitName('c.txt')).toEqual(['', 'c.txt'])
})

test('what could act as a page is text', () => {
  expect(previewKind('text/html; charset=utf-8')).toBe('text')
  expect(previewKind('image/svg+xml')).toBe('text')
  expect(previewKind('application/xhtml+xml')).toBe('text')
  expect(previewKind('image/PNG')).toBe('picture')
  expect(previewKind('application/zip')).toBe('none')
  expect(previewKind('application/octet-stream', 'a/data.json')).toBe('text')
  expect(previewKind('application/octet-stream', 'a/data.bin')).toBe('none')
})
