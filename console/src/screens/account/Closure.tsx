import { useState } from 'react'
import { texts } from '#texts/account'
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
    <Card title={texts.deleteAccount} actions={<Button look="danger" onClick={() => setAsks(true)}>{texts.deleteAccount}</Button>}
      lead={texts.endsYourSessionsTokensAnd}>
      {asks && (
        <Confirm title={texts.deleteAccount} open name={user.username} action={texts.deleteAccount} onClose={() => setAsks(false)}
          onSubmit={remove}>
          <Stack>
            <p>
              {texts.yourAccountSessionsTokensAnd}
            </p>
            <TextField label={texts.yourPassword} type="password" required autoComplete="current-password" value={password}
              onChange={(e) => setPassword(e.target.value)} />
            <TextField label={texts.codeOfYourSecondFactor} autoComplete="one-time-code" value={code}
              hint={texts.onlyIfYouHaveA} onChange={(e) => setCode(e.target.value.trim())} />
          </Stack>
        </Confirm>
      )}
    </Card>
  )
}
