import { expect, test } from 'vitest'
import { remedyOf, subjectOf, tableOf } from './remedies'

const finding = (code: string, object: string) => ({ code, object, severity: 'info' as const, sentence: '' })

test('objects are read with their quotes', () => {
  expect(subjectOf('"read on all" on public."Weird ""on"" x"'))
    .toEqual({ name: '"read on all"', relation: 'public."Weird ""on"" x"' })
  expect(subjectOf('public.books')).toEqual({ name: null, relation: 'public.books' })
  expect(tableOf('public."Weird ""on"" x"')).toBe('public.Weird "on" x')
  expect(tableOf('public.add(integer, integer)')).toBeNull()
})

test('remedies name the object as SQL has it', () => {
  expect(remedyOf(finding('rls_disabled', 'public.books')).sql)
    .toBe('alter table public.books enable row level security;')
  expect(remedyOf(finding('invalid_index', 'i on "My".t')).sql).toBe('drop index "My".i;')
  expect(remedyOf(finding('constraint_not_valid', 'c on public.t'))).toEqual({
    sql: 'alter table public.t validate constraint c;', table: 'public.t', tab: 'constraints',
  })
})

test('a foreign key needs its columns, an unknown code has no statement', () => {
  const key = finding('foreign_key_without_index', 'books_author_id_fkey on public.books')
  expect(remedyOf(key).sql).toBeNull()
  expect(remedyOf(key, ['author_id']).sql).toBe('create index on public.books (author_id);')
  expect(remedyOf(finding('new_code', 'public.books')).sql).toBeNull()
})
