import { expect, test } from 'vitest'
import { verdictOf, type Command, type Rules } from './callers'

type Policy = Rules['policies'][number]
const policy = (name: string, p: Partial<Policy>): Policy =>
  ({ name, command: 'all', roles: ['authenticated'], permissive: true, using: null, withCheck: null, ...p })

const rules: Rules = {
  rowSecurity: true,
  grants: [
    { role: 'public', privileges: [] },
    { role: 'anon', privileges: ['select', 'delete'] },
    { role: 'authenticated', privileges: ['select', 'insert', 'update', 'delete'] },
    { role: 'service_role', privileges: ['select', 'insert', 'update', 'delete'] },
  ],
  policies: [
    policy('own', { using: 'owner = auth.uid()' }),
    policy('visible', { command: 'select', permissive: false, using: 'not hidden' }),
    policy('all', { command: 'select', roles: ['anon'], using: 'true' }),
  ],
}
const off = { ...rules, rowSecurity: false }

test.each<[string, string, Command, Rules, string, string[]]>([
  ['no grant', 'anon', 'insert', rules, 'refused', []],
  ['a grant, no policy for the command', 'anon', 'delete', rules, 'none', []],
  ['a policy that is always true', 'anon', 'select', rules, 'all', []],
  ['row level security off', 'anon', 'delete', off, 'all', []],
  ['row level security off, no grant', 'anon', 'update', off, 'refused', []],
  ['the service role', 'service_role', 'delete', rules, 'all', []],
  ['a permissive and a restrictive policy', 'authenticated', 'select', rules, 'some', ['own', 'visible']],
  ['using stands for with check', 'authenticated', 'insert', rules, 'some', ['own']],
  ['an update', 'authenticated', 'update', rules, 'some', ['own']],
  ['a grant to public', 'anon', 'insert', { ...off, grants: [{ role: 'public', privileges: ['insert'] }] }, 'all', []],
  ['a policy for public', 'anon', 'select', { ...rules, policies: [policy('p', { roles: ['public'], using: 'a = 1' })] }, 'some', ['p']],
  ['a restrictive policy alone', 'authenticated', 'select', { ...rules, policies: [policy('p', { permissive: false, using: 'true' })] }, 'none', []],
  ['an update without select', 'anon', 'update', { ...off, grants: [{ role: 'anon', privileges: ['update'] }] }, 'refused', []],
  ['an open delete, but rows to be read first', 'authenticated', 'delete', {
    ...rules, policies: [policy('d', { command: 'delete', using: 'true' }), policy('s', { command: 'select', using: 'a = 1' })],
  }, 'some', ['s']],
  ['an update that no select policy helps', 'authenticated', 'update', {
    ...rules, policies: [policy('u', { command: 'update', using: 'true' })],
  }, 'none', []],
  ['an unknown role', 'editor', 'select', rules, 'refused', []],
])('%s', (_, role, command, given, kind, policies) => {
  const got = verdictOf(role, command, given)
  expect([got.kind, got.conditions.map((c) => c.policy)]).toEqual([kind, policies])
  expect(got.reason).not.toBe('')
})

test('the condition on written rows is told apart', () => {
  const p = policy('p', { using: 'a = 1', withCheck: 'b = 2' })
  const text = (command: Command) => verdictOf('authenticated', command, { ...rules, policies: [p] }).conditions[0]?.text
  expect([text('select'), text('insert'), text('update')]).toEqual(['a = 1', 'b = 2', 'a = 1; as written: b = 2'])
})
