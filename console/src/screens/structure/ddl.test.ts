import { expect, test } from 'vitest'
import { addColumn, addConstraint, alterColumn, createIndex, createPolicy, defaultExpression } from './ddl'
import { identifier } from '../../components/sqlText'

const draft = {
  name: 'price', type: 'numeric', defaultValue: '', notNull: false, unique: false, primary: false, comment: '',
  referenceTable: '', referenceColumn: '', using: 'cast',
}

test('names are quoted where SQL needs it', () => {
  expect(identifier('price')).toBe('price')
  expect(identifier('Weird "name" 📚')).toBe('"Weird ""name"" 📚"')
})

test('defaults are calls, literals or quoted values', () => {
  expect(defaultExpression('now()')).toBe('now()')
  expect(defaultExpression("'a'::text")).toBe("'a'::text")
  expect(defaultExpression('9.90')).toBe('9.90')
  expect(defaultExpression("it's")).toBe("'it''s'")
})

test('a new column names its reference and comment', () => {
  const c = { ...draft, notNull: true, referenceTable: 'public.authors', referenceColumn: 'id', comment: "writer's" }
  expect(addColumn('public.books', c).sql).toBe(
    'alter table public.books add column price numeric not null references public.authors (id);\n' +
    "comment on column public.books.price is 'writer''s';")
})

test('a changed column has only what changes', () => {
  const next = { ...draft, name: 'cost', type: 'text', notNull: true }
  expect(alterColumn('public.books', draft, next).sql.split('\n')).toEqual([
    'alter table public.books alter column price type text using price::text;',
    'alter table public.books alter column price set not null;',
    'alter table public.books rename column price to cost;',
  ])
  expect(alterColumn('public.books', draft, draft).sql).toBe('')
})

test('indexes, constraints and policies', () => {
  expect(createIndex('public.books', {
    name: 'i', keys: ['title', 'lower(isbn)'], include: ['id'], method: 'btree', unique: true, where: 'in_print',
  }).sql).toBe('create unique index i on public.books using btree (title, lower(isbn)) include (id) where in_print;')

  expect(addConstraint('public.books', {
    type: 'foreign', name: '', columns: ['author_id'], expression: '', referenceTable: 'public.authors',
    referenceColumns: ['id'], onDelete: 'cascade', onUpdate: 'no action', notValid: true, deferrable: false,
    initiallyDeferred: false,
  }).sql).toBe('alter table public.books add foreign key (author_id) references public.authors (id) ' +
    'on delete cascade not valid;')

  expect(createPolicy('public.books', {
    name: 'own rows', command: 'select', roles: ['authenticated'], permissive: true, using: 'true', withCheck: 'true',
  }).sql).toBe('create policy "own rows" on public.books\n  for select to authenticated\n  using (true);')
})
