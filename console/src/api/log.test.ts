import { expect, test } from 'vitest'
import { curl, record, recorded } from './log'

test('a request becomes a command that a shell reads as it was', () => {
  record({ method: 'POST', url: 'http://h/tables?x=1', status: 201, body: `{"name": "it's"}`,
    headers: new Headers({ 'X-Project': 'p', Authorization: 'Bearer secret' }) })

  const [latest] = recorded()
  expect(curl(latest!, 'http://h')).toBe(
    `curl -X POST 'http://h/tables?x=1' -H "Authorization: Bearer $TOKEN" -H 'x-project: p' -d '{"name": "it'\\''s"}'`)
})

test('secrets of a body are left out', () => {
  record({ method: 'POST', url: 'http://h/x', status: 201, headers: new Headers(),
    body: '{"name":"password","secret":"s3cret","more":[{"password":"s3cret"}],"tokens":1}' })

  expect(recorded()[0]?.body).toBe('{"name":"password","secret":"…","more":[{"password":"…"}],"tokens":1}')
})

test('the list is bounded, newest first', () => {
  for (let i = 0; i < 80; i++) record({ method: 'GET', url: `http://h/${i}`, status: 200, body: '', headers: new Headers() })

  expect(recorded()).toHaveLength(50)
  expect(recorded()[0]?.path).toBe('/79')
})
