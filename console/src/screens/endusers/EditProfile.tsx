import { useState } from 'react'
import { texts } from '#texts/endusers'
import { api, read, type Schemas } from '../../api/client'
import { FormDialog } from '../../components/Dialog'
import { CheckField, TextField } from '../../components/Field'
import { queries } from '../../queries'

/** Changes a user's address and number. */
export function EditProfile({ project, account, onClose }: {
  project: string
  account: Schemas['Account']
  onClose: () => void
}) {
  const [email, setEmail] = useState(account.email)
  const [phone, setPhone] = useState(account.phone === '' ? '' : `+${account.phone}`)
  const [emailConfirmed, setEmailConfirmed] = useState(account.emailConfirmedAt !== null)
  const [phoneConfirmed, setPhoneConfirmed] = useState(account.phoneConfirmedAt !== null)

  async function save() {
    await read(api.PUT('/projects/{projectUUID}/end-users/{endUserUUID}', {
      params: { path: { projectUUID: project, endUserUUID: account.uuid } },
      body: {
        ...(email !== account.email && { email }),
        ...(phone.replace('+', '') !== account.phone && { phone }),
        ...(emailConfirmed !== (account.emailConfirmedAt !== null) && { is_confirmed: emailConfirmed }),
        ...(phoneConfirmed !== (account.phoneConfirmedAt !== null) && { is_phone_confirmed: phoneConfirmed }),
      },
    }))
    await queries.invalidateQueries({ queryKey: ['end-users', project] })
  }

  return (
    <FormDialog title={texts.editProfile} open onClose={onClose} action={texts.saveProfile} onSubmit={save}>
      <TextField label={texts.address} type="email" autoComplete="off" value={email} onChange={(e) => setEmail(e.target.value)} />
      <CheckField label={texts.addressIsConfirmed} checked={emailConfirmed} disabled={email === ''}
        onChange={(e) => setEmailConfirmed(e.target.checked)} />
      <TextField label={texts.phoneNumber} type="tel" autoComplete="off" value={phone} placeholder="+491701234567"
        onChange={(e) => setPhone(e.target.value)} />
      <CheckField label={texts.numberIsConfirmed} checked={phoneConfirmed} disabled={phone === ''}
        onChange={(e) => setPhoneConfirmed(e.target.checked)} />
    </FormDialog>
  )
}
