import { useState } from 'react'
import { Link } from '@tanstack/react-router'
import { texts } from '#texts/access'
import { api, read } from '../../api/client'
import { TextField } from '../../components/Field'
import { AccessForm, Frame, FrameLinks } from './Frame'

/** Mails a link by which a person sets a new password. */
export function Forgotten() {
  const [email, setEmail] = useState('')
  const [sent, setSent] = useState(false)

  return (
    <Frame title={texts.forgottenPassword} lead={texts.weMailYouALink}>
      {sent ? (
        <p role="status">
          {texts.ifBelongsToAnAccount(<b>{email}</b>)}
        </p>
      ) : (
        <AccessForm action={texts.sendLink} onSubmit={async () => {
          await read(api.POST('/users/password/forgot', { body: { email } }))
          setSent(true)
        }}>
          <TextField label={texts.eMailAddress} type="email" required autoComplete="username" autoFocus value={email}
            onChange={(e) => setEmail(e.target.value)} />
        </AccessForm>
      )}
      <FrameLinks>
        <Link to={'/sign-in' as string}>{texts.backToSignIn}</Link>
        {sent && <Link to="." onClick={() => setSent(false)}>{texts.sendToAnotherAddress}</Link>}
      </FrameLinks>
    </Frame>
  )
}
