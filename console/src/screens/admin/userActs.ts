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
    title: 'Suspend user',
    loss: 'is signed out everywhere, and their tokens are refused, until you activate them again.',
    run: (user) => update(user, { status: 'suspended' }),
  },
  activate: { title: 'Activate user', loss: 'can sign in again.', run: (user) => update(user, { status: 'active' }) },
  promote: {
    title: 'Make administrator',
    loss: 'will reach all organizations and projects, and these pages.',
    run: (user) => update(user, { is_administrator: true }),
  },
  demote: {
    title: 'Remove administrator',
    loss: 'will reach only their own organizations, and not these pages.',
    run: (user) => update(user, { is_administrator: false }),
  },
  removeFactor: {
    title: 'Remove second factor',
    loss: 'signs in with the password alone from then on. Their sessions end and a mail tells them. Verify first who asks for it.',
    run: async (user) => {
      await read(api.DELETE('/admin/users/{userUUID}/totp', { params: { path: { userUUID: user } } }))
      await changed()
    },
  },
  remove: {
    title: 'Delete user',
    loss: 'loses the account, sessions, tokens and memberships. This cannot be undone. What they created in projects stays.',
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
