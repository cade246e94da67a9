import { texts } from '#texts/admin'
import { api, read } from '../../api/client'
import { queries } from '../../queries'

export type Act = 'suspend' | 'activate' | 'promote' | 'demote' | 'removeFactor' | 'remove'

interface Description {
  title: string // of the dialog, its button and the menu
  loss: string
  run: (user: string) => Promise<void>
}

/** What administrators do to users, in words that say what is lost. */
export const acts: Record<Act, Description> = {
  suspend: {
    title: texts.suspendUser,
    loss: texts.isSignedOutEverywhereAnd,
    run: (user) => update(user, { status: 'suspended' }),
  },
  activate: { title: texts.activateUser, loss: texts.canSignInAgain, run: (user) => update(user, { status: 'active' }) },
  promote: {
    title: texts.makeAdministrator,
    loss: texts.willReachAllOrganizationsAnd,
    run: (user) => update(user, { is_administrator: true }),
  },
  demote: {
    title: texts.removeAdministrator,
    loss: texts.willReachOnlyTheirOwn,
    run: (user) => update(user, { is_administrator: false }),
  },
  removeFactor: {
    title: texts.removeSecondFactor,
    loss: texts.signsInWithThePassword,
    run: async (user) => {
      await read(api.DELETE('/admin/users/{userUUID}/totp', { params: { path: { userUUID: user } } }))
      await changed()
    },
  },
  remove: {
    title: texts.deleteUser,
    loss: texts.losesTheAccountSessionsTokens,
    run: async (user) => {
      await read(api.DELETE('/users/{userUUID}', { params: { path: { userUUID: user } } }))
      await changed()
    },
  },
}

async function update(user: string, body: { status?: 'active' | 'suspended'; is_administrator?: boolean }) {
  await read(api.PUT('/admin/users/{userUUID}', { params: { path: { userUUID: user } }, body }))
  await changed()
}

const changed = () => queries.invalidateQueries({ queryKey: ['admin users'] })
