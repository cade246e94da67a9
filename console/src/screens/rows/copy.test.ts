import { expect, test } from 'vitest'
import { write } from './copy'
import { parseRows } from './json'
import { kindOf, type Column } from './types'

const column = (name: string, type: string): Column => ({
  name, type, kind: kindOf(type), notNull: false, primary: false, defaultValue: '', reference: null, values: [], comment: '',
})
const source = {
  schema: 'public', name: 'Odd "t"',
  columns: [column('id', 'bigint'), column('note', 'text'), column('tags', 'text[]'), column('doc', 'jsonb')],
}
const rows = parseRows('[{"id":9007199254740993,"note":"a \\"b\\"|\\nc\'s","tags":["x,y","q\\"",null],"doc":{"n":1.10}},'
  + '{"id":2,"note":null,"tags":[],"doc":null}]')

test('CSV tells null and empty text apart', () => {
  expect(write('CSV', source, rows)).toBe('id,note,tags,doc\r\n'
    + '9007199254740993,"a ""b""|\nc\'s","[""x,y"",""q\\"""",null]","{""n"":1.10}"\r\n2,,[],\r\n')
})

test('SQL quotes', () => {
  expect(write('SQL', source, rows)).toBe('insert into public."Odd ""t""" (id, note, tags, doc)\n'
    + 'overriding system value values\n'
    + '  (9007199254740993, \'a "b"|\nc\'\'s\', \'{"x,y","q\\"",null}\', \'{"n":1.10}\'),\n'
    + "  (2, null, '{}', null);\n")
})

test('JSON keeps numbers', () => {
  expect(write('JSON', source, rows)).toContain('"id": 9007199254740993')
})

test('Markdown stays in its cells', () => {
  expect(write('Markdown', source, rows).split('\n')[2]).toBe(
    '| 9007199254740993 | a "b"\\|<br>c\'s | ["x,y","q\\\\"",null] | {"n":1.10} |')
})
