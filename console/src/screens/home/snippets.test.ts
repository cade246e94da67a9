import { expect, test } from 'vitest'
import { clients, snippet } from './snippets'

const target = { origin: 'https://socle.test', project: 'P', key: 'socle_publishable_x', table: 'books' }

test('each client has the address or the project', () => {
  for (const client of clients) expect(snippet(client, target)).toMatch(/socle\.test/)
})

test('curl', () => {
  expect(snippet('curl', target)).toBe(
    `curl 'https://socle.test/projects/P/rest/v1/books?select=*&limit=10' \\\n  -H 'apikey: socle_publishable_x'`)
})

test('hostile names stay inside their quotes', () => {
  const hostile = { ...target, table: `it's "; rm -rf ~\n` }
  expect(snippet('curl', hostile)).toContain('/it\'\\\'\'s%20%22%3B%20rm%20-rf%20~%0A?')
  expect(snippet('supabase-js', hostile)).toContain(`from('it\\'s "; rm -rf ~\\n')`)
  expect(snippet('psql', hostile)).toContain(`from "it'\\''s ""; rm -rf ~\n" limit`)
})
