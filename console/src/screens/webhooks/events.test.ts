import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { eventTypes, parseHeaders } from './events'

test('the types are those of the server', () => {
  const source = readFileSync(new URL('../../../../internal/event/types.go', import.meta.url), 'utf8')
  const facts = source.slice(source.indexOf('var Facts ='))
  const types = [...facts.matchAll(/\{"(socle\.[\w.]+)", "([^"]*)"\}/g)].map(([, name, text]) => [name, text])
  expect(Object.entries(eventTypes)).toEqual(types)
})

test('headers', () => {
  expect(parseHeaders('Authorization: Bearer a: b\n\n X-Key : 1 ')).toEqual({ Authorization: 'Bearer a: b', 'X-Key': '1' })
  expect(parseHeaders('')).toEqual({})
  expect(parseHeaders('no colon')).toContain('no colon')
  expect(parseHeaders('Empty:')).toContain('Empty:')
})
