import { expect, test } from 'vitest'
import { opensWrites, templates } from './templates'

const choice = {
  owner: 'user_id', group: 'Team', members: 'public.members', memberGroup: 'team_id', memberUser: 'user_id',
}
const made = (title: string) => templates.find((t) => t.title === title)!.make(choice)

test('the owner is compared by a subquery', () => {
  expect(made('Owner of the row').using).toBe('user_id = (select auth.uid())')
})

test('members are looked up in their table, with quoted names', () => {
  expect(made('Members of a group').using).toBe(
    '"Team" in (select m.team_id from public.members m where m.user_id = (select auth.uid()))')
})

test('writing without an account needs a confirmation', () => {
  expect(opensWrites({ ...made('Read all'), command: 'insert' })).toBe(true)
  expect(opensWrites(made('Read all'))).toBe(false)
  expect(opensWrites(made('Owner of the row'))).toBe(false)
})
