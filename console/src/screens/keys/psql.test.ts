import { expect, test } from 'vitest'
import { clientAddress, psqlCommand } from './psql'

test('psqlCommand escapes what a URL does not allow', () => {
  expect(psqlCommand({ address: 'db.test:5432', username: 'u', password: 'a/b@c', database: 'Book shop' }))
    .toBe('psql "postgres://u:a%2Fb%40c@db.test:5432/Book%20shop?sslmode=verify-full"')
})

test.each([
  [':5432', 'socle.test:5432'],
  ['0.0.0.0:6000', 'socle.test:6000'],
  ['[::]:6000', 'socle.test:6000'],
  ['10.0.0.7:5432', '10.0.0.7:5432'],
])('clientAddress(%s)', (listen, want) => {
  expect(clientAddress(listen, 'socle.test')).toBe(want)
})
