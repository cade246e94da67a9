import { useState } from 'react'
import { Link } from '@tanstack/react-router'
import { api, read } from '../../api/client'
import type { User } from '../../api/session'
import { Button } from '../../components/Button'
import { FormDialog } from '../../components/Dialog'
import { TextField } from '../../components/Field'
import { Card } from '../../components/Page'
import { SettingsForm } from '../../components/SettingsForm'
import type { Spec } from '../../components/specs'
import { toast } from '../../components/Toast'
import { queries } from '../../queries'

const specs: Spec[] = [
  { name: 'username', label: 'User name', kind: 'text', hint: '3 to 100 letters, digits, _ or -.' },
  { name: 'bio', label: 'About you', kind: 'area' },
]

export function Profile({ user }: { user: User }) {
  const [changes, setChanges] = useState(false)

  return (
    <>
      <SettingsForm title="Profile" specs={specs} values={{ ...user }} save={async (body) => {
        await read(api.PUT('/users/{userUUID}', { params: { path: { userUUID: user.uuid } }, body }))
        await queries.invalidateQueries({ queryKey: ['account'] })
      }} />
      <Card title="E-mail address" actions={<Button onClick={() => setChanges(true)}>Change address</Button>}>
        <p>{user.email}</p>
        {changes && <ChangeEmail onClose={() => setChanges(false)} />}
      </Card>
      <Card title="Organization" lead="Your first organization came with the account.">
        <p><Link to={`/organizations/${user.organizationUuid}` as string}>Open your organization</Link></p>
      </Card>
    </>
  )
}

function ChangeEmail({ onClose }: { onClose: () => void }) {
  const [email, setEmail] = useState('')
  const [password, setPassword] = useState('')

  return (
    <FormDialog title="Change e-mail address" open onClose={onClose} action="Send link" onSubmit={async () => {
      await read(api.POST('/users/me/email', { body: { email, password } }))
      toast(`Open the link in the mail to ${email} within a day.`)
    }}>
      <p>We mail a link to the new address. Your address changes when you open it.</p>
      <TextField label="New address" type="email" required autoFocus maxLength={254} value={email}
        onChange={(e) => setEmail(e.target.value)} />
      <TextField label="Your password" type="password" required autoComplete="current-password" value={password}
        onChange={(e) => setPassword(e.target.value)} />
    </FormDialog>
  )
}

export function Password({ user }: { user: User }) {
  const [changes, setChanges] = useState(false)

  return (
    <Card title="Password" lead="A new password ends all your other sessions."
      actions={<Button onClick={() => setChanges(true)}>Change password</Button>}>
      {changes && <ChangePassword user={user} onClose={() => setChanges(false)} />}
    </Card>
  )
}

function ChangePassword({ user, onClose }: { user: User; onClose: () => void }) {
  const [password, setPassword] = useState('')

  return (
    <FormDialog title="Change password" open onClose={onClose} action="Change password" onSubmit={async () => {
      await read(api.PUT('/users/{userUUID}', { params: { path: { userUUID: user.uuid } }, body: { password } }))
      await queries.invalidateQueries({ queryKey: ['sessions'] })
      toast('Your password is changed. All other sessions have ended.')
    }}>
      <input type="text" autoComplete="username" value={user.email} readOnly hidden aria-label="E-mail address" />
      <TextField label="New password" type="password" required minLength={8} autoFocus autoComplete="new-password"
        hint="At least 8 characters." value={password} onChange={(e) => setPassword(e.target.value)} />
    </FormDialog>
  )
}
