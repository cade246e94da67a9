import { useState } from 'react'
import { api, read } from '../../api/client'
import { signOut, type User } from '../../api/session'
import { Button } from '../../components/Button'
import { Confirm } from '../../components/Dialog'
import { TextField } from '../../components/Field'
import { Card, Stack } from '../../components/Page'
import { queries } from '../../queries'

/** Deletes the account. */
export function Closure({ user }: { user: User }) {
  const [asks, setAsks] = useState(false)
  const [password, setPassword] = useState('')
  const [code, setCode] = useState('')

  async function remove() {
    await read(api.DELETE('/users/me', { body: { password, ...(code !== '' && { code }) } }))
    await signOut().catch(() => undefined) // its sessions have ended already
    queries.clear()
  }

  return (
    <Card title="Delete account" actions={<Button look="danger" onClick={() => setAsks(true)}>Delete account</Button>}
      lead="Ends your sessions, tokens and memberships. Organizations with other members or projects need another owner first.">
      {asks && (
        <Confirm title="Delete account" open name={user.username} action="Delete account" onClose={() => setAsks(false)}
          onSubmit={remove}>
          <Stack>
            <p>
              Your account, sessions, tokens and memberships are gone at once and cannot be brought back. Organizations
              without another member or project are deleted. What you created in projects stays.
            </p>
            <TextField label="Your password" type="password" required autoComplete="current-password" value={password}
              onChange={(e) => setPassword(e.target.value)} />
            <TextField label="Code of your second factor" autoComplete="one-time-code" value={code}
              hint="Only if you have a second factor." onChange={(e) => setCode(e.target.value.trim())} />
          </Stack>
        </Confirm>
      )}
    </Card>
  )
}
