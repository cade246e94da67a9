import { useState } from 'react'
import { useNavigate } from '@tanstack/react-router'
import { texts } from '#texts/endusers'
import { api, read } from '../../api/client'
import { Button } from '../../components/Button'
import { FormDialog } from '../../components/Dialog'
import { CheckField, TextArea, TextField } from '../../components/Field'
import { queries } from '../../queries'
import { parseMembers } from './account'

/** Creates a user by an address or a number, with or without a password. */
export function NewEndUser({ project, onClose }: { project: string; onClose: () => void }) {
  const navigate = useNavigate()
  const [key] = useState(() => crypto.randomUUID())
  const [email, setEmail] = useState('')
  const [phone, setPhone] = useState('')
  const [password, setPassword] = useState('')
  const [confirmed, setConfirmed] = useState(true)
  const [metadata, setMetadata] = useState('')
  const members = parseMembers(metadata)

  async function create() {
    if (typeof members === 'string') throw new Error(members)

    const { content } = await read(api.POST('/projects/{projectUUID}/end-users', {
      params: { path: { projectUUID: project } },
      body: {
        ...(email !== '' && { email, is_confirmed: confirmed }),
        ...(phone !== '' && { phone, is_phone_confirmed: confirmed }),
        ...(password !== '' && { password }),
        ...(Object.keys(members).length > 0 && { user_metadata: members }),
      },
      headers: { 'Idempotency-Key': key },
    }))
    await queries.invalidateQueries({ queryKey: ['end-users', project] })
    await navigate({ to: `/projects/${project}/users/${content.uuid}` })
  }

  return (
    <FormDialog title={texts.createUser} open onClose={onClose} action={texts.createUser} onSubmit={create}
      disabled={email === '' && phone === ''}>
      <TextField label={texts.address} type="email" autoComplete="off" value={email} autoFocus
        onChange={(e) => setEmail(e.target.value)} />
      <TextField label={texts.phoneNumber} type="tel" autoComplete="off" value={phone} placeholder="+491701234567"
        hint={texts.anAddressANumberOr} onChange={(e) => setPhone(e.target.value)} />
      <TextField label={texts.password} autoComplete="off" value={password} spellCheck={false}
        hint={texts.withoutAPasswordTheUser}
        onChange={(e) => setPassword(e.target.value)} />
      <div>
        <Button onClick={() => setPassword(randomPassword())}>{texts.generatePassword}</Button>
      </div>
      <CheckField label={texts.addressAndNumberAreConfirmed} checked={confirmed}
        hint={texts.otherwiseTheUserHasTo}
        onChange={(e) => setConfirmed(e.target.checked)} />
      <TextArea label={texts.metadataJSON} value={metadata} placeholder={texts.nameGrace} spellCheck={false}
        error={typeof members === 'string' ? members : undefined} onChange={(e) => setMetadata(e.target.value)} />
    </FormDialog>
  )
}

/** Returns 20 random letters and digits, without those that look alike. */
export function randomPassword(): string {
  const letters = 'abcdefghijkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789'
  const bytes = crypto.getRandomValues(new Uint8Array(64)).filter((b) => b < 224) // 4 × 56: no letter is likelier

  return Array.from(bytes.slice(0, 20), (b) => letters[b % 56]).join('')
}
