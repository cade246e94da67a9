import { useState } from 'react'
import { Link } from '@tanstack/react-router'
import { texts } from '#texts/account'
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
  { name: 'username', label: texts.userName, kind: 'text', hint: texts.threeToThe100LettersDigits },
  { name: 'bio', label: texts.aboutYou, kind: 'area' },
]

export function Profile({ user }: { user: User }) {
  const [changes, setChanges] = useState(false)

  return (
    <>
      <SettingsForm title={texts.profile} specs={specs} values={{ ...user }} save={async (body) => {
        await read(api.PUT('/users/{userUUID}', { params: { path: { userUUID: user.uuid } }, body }))
        await queries.invalidateQueries({ queryKey: ['account'] })
      }} />
      <Card title={texts.eMailAddress} actions={<Button onClick={() => setChanges(true)}>{texts.changeAddress}</Button>}>
        <p>{user.email}</p>
        {changes && <ChangeEmail onClose={() => setChanges(false)} />}
      </Card>
      <Card title={texts.organization} lead={texts.yourFirstOrganizationCameWith}>
        <p><Link to={`/organizations/${user.organizationUuid}` as string}>{texts.openYourOrganization}</Link></p>
      </Card>
    </>
  )
}

function ChangeEmail({ onClose }: { onClose: () => void }) {
  const [email, setEmail] = useState('')
  const [password, setPassword] = useState('')

  return (
    <FormDialog title={texts.changeEMailAddress} open onClose={onClose} action={texts.sendLink} onSubmit={async () => {
      await read(api.POST('/users/me/email', { body: { email, password } }))
      toast(texts.openTheLinkInThe(email))
    }}>
      <p>{texts.weMailALinkTo}</p>
      <TextField label={texts.newAddress} type="email" required autoFocus maxLength={254} value={email}
        onChange={(e) => setEmail(e.target.value)} />
      <TextField label={texts.yourPassword} type="password" required autoComplete="current-password" value={password}
        onChange={(e) => setPassword(e.target.value)} />
    </FormDialog>
  )
}

export function Password({ user }: { user: User }) {
  const [changes, setChanges] = useState(false)

  return (
    <Card title={texts.password} lead={texts.aNewPasswordEndsAll}
      actions={<Button onClick={() => setChanges(true)}>{texts.changePassword}</Button>}>
      {changes && <ChangePassword user={user} onClose={() => setChanges(false)} />}
    </Card>
  )
}

function ChangePassword({ user, onClose }: { user: User; onClose: () => void }) {
  const [password, setPassword] = useState('')

  return (
    <FormDialog title={texts.changePassword} open onClose={onClose} action={texts.changePassword} onSubmit={async () => {
      await read(api.PUT('/users/{userUUID}', { params: { path: { userUUID: user.uuid } }, body: { password } }))
      await queries.invalidateQueries({ queryKey: ['sessions'] })
      toast(texts.yourPasswordIsChangedAll)
    }}>
      <input type="text" autoComplete="username" value={user.email} readOnly hidden aria-label={texts.eMailAddress} />
      <TextField label={texts.newPassword} type="password" required minLength={8} autoFocus autoComplete="new-password"
        hint={texts.atLeastEightCharacters} value={password} onChange={(e) => setPassword(e.target.value)} />
    </FormDialog>
  )
}
