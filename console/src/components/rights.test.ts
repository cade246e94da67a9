import { expect, test } from 'vitest'
import { access } from '../api/access'
import { roles } from './Roles'
import { refusalOf, type Operation } from './rights'

test.each<[Operation, keyof typeof roles, boolean]>([
  ['createTable', 'viewer', true], ['createTable', 'developer', false], ['createTable', 'administrator', false],
  ['createKey', 'developer', true], ['createKey', 'admin', false],
  ['deleteProject', 'admin', true], ['deleteProject', 'owner', false],
  ['updateQuota', 'owner', true], ['writeRows', 'viewer', true], ['writeRows', 'developer', false],
])('%s by the role %s: refused %s', (operation, role, refused) => {
  expect(refusalOf(operation, roles[role]) !== undefined).toBe(refused)
})

test('a refusal names the role that is needed and the one that is held', () => {
  expect(refusalOf('createTable', roles.viewer)).toBe('Needs the role developer. You are viewer.')
  expect([refusalOf('createTable', undefined), refusalOf(undefined, roles.viewer)]).toEqual([undefined, undefined])
})

test('every operation needs a known role', () => {
  for (const role of Object.values(access)) expect(roles).toHaveProperty(role)
})
