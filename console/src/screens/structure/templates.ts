/** Policies to begin with, in words that people use. */

import { texts } from '#texts/structure'
import { identifier, literal } from '../../components/sqlText'
import type { PolicyDraft } from './ddl'

export interface Template {
  title: string
  text: string
  make: (choice: Choice) => PolicyDraft
  needs: 'nothing' | 'owner' | 'members' // which choices make applies
}

export interface Choice {
  owner: string // column with the UUID of the owning user
  group: string // column of this table that names the group
  members: string // schema.table with the memberships
  memberGroup: string // its column that names the group
  memberUser: string // its column with the UUID of the user
}

const uid = '(select auth.uid())' // a subquery runs once for each statement, not for each row
const base: PolicyDraft = { name: '', command: 'select', roles: ['authenticated'], permissive: true, using: '', withCheck: '' }

function membership(c: Choice): string {
  const dot = c.members.indexOf('.')
  const table = `${identifier(c.members.slice(0, dot))}.${identifier(c.members.slice(dot + 1))}`
  return `${identifier(c.group)} in (select m.${identifier(c.memberGroup)} from ${table} m ` +
    `where m.${identifier(c.memberUser)} = ${uid})`
}

const owned = (c: Choice) => `${identifier(c.owner)} = ${uid}`

export const templates: Template[] = [
  {
    title: texts.ownerOfTheRow, text: texts.aSignedInUserReads, needs: 'owner',
    make: (c) => ({ ...base, name: 'owner_reads_and_writes', command: 'all', using: owned(c), withCheck: owned(c) }),
  },
  {
    title: texts.ownerReads, text: texts.aSignedInUserReadsThe, needs: 'owner',
    make: (c) => ({ ...base, name: 'owner_reads', using: owned(c) }),
  },
  {
    title: texts.readAll, text: texts.everyoneReadsAllRowsAlso, needs: 'nothing',
    make: () => ({ ...base, name: 'everyone_reads', roles: ['anon', 'authenticated'], using: 'true' }),
  },
  {
    title: texts.signedInUsersReadAll, text: texts.everySignedInUserReads, needs: 'nothing',
    make: () => ({ ...base, name: 'users_read', using: 'true' }),
  },
  {
    title: texts.membersOfAGroup, text: texts.aSignedInUserReadsAnd,
    needs: 'members',
    make: (c) => ({
      ...base, name: 'members_read_and_write', command: 'all', using: membership(c), withCheck: membership(c),
    }),
  },
  {
    title: texts.insertOwnRows, text: texts.aSignedInUserAdds, needs: 'owner',
    make: (c) => ({ ...base, name: 'owner_inserts', command: 'insert', withCheck: owned(c) }),
  },
  {
    title: texts.roleInTheToken, text: texts.usersWhoseAppMetadataHas, needs: 'nothing',
    make: () => {
      const admin = `(select auth.jwt() -> ${literal('app_metadata')} ->> ${literal('role')}) = ${literal('admin')}`
      return { ...base, name: 'admins_do_everything', command: 'all', using: admin, withCheck: admin }
    },
  },
  {
    title: texts.ownCondition, text: texts.anEmptyPolicyToWrite, needs: 'nothing', make: () => base,
  },
]

/** Reports whether a policy lets callers without an account write, which the API asks to confirm. */
export function opensWrites(p: PolicyDraft): boolean {
  return p.permissive && p.command !== 'select' && p.roles.some((role) => role === 'anon' || role === 'public')
}
