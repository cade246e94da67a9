import { expect, test } from 'vitest'
import { curl, record, recorded } from './log'

test('a request becomes a command that a shell reads as it was', () => {
  record({ method: 'POST', url: 'http://h/tables?x=1', status: 201, body: `{"name": "it's"}`,
    headers: new Headers({ 'X-Project': 'p', Authorization: 'Bearer secret' }) })

  const [latest] = recorded()
  expect(curl(latest!, 'http://h')).toBe(
    `curl -X POST 'http://h/tables?x=1' -H "Authorization: Bearer $TOKEN" -H 'x-project: p' -d '{"name": "it'\\''s"}'`)
})

test('the list is bounded, newest first', () => {
  for (let i = 0; i < 80; i++) record({ method: 'GET', url: `http://h/${i}`, status: 200, body: '', headers: new Headers() })

  expect(recorded()).toHaveLength(50)
  expect(recorded()[0]?.path).toBe('/79')
})
