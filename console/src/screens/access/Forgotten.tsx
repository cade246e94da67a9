import { useState } from 'react'
import { Link } from '@tanstack/react-router'
import { api, read } from '../../api/client'
import { TextField } from '../../components/Field'
import { AccessForm, Frame, FrameLinks } from './Frame'

/** Mails a link by which a person sets a new password. */
export function Forgotten() {
  const [email, setEmail] = useState('')
  const [sent, setSent] = useState(false)

  return (
    <Frame title="Forgotten password" lead="We mail you a link that sets a new password. It works once, within an hour.">
      {sent ? (
        <p role="status">
          If <b>{email}</b> belongs to an account, a mail with a link is on its way. Without a mail server, the
          administrator finds it in the server's log.
        </p>
      ) : (
        <AccessForm action="Send link" onSubmit={async () => {
          await read(api.POST('/users/password/forgot', { body: { email } }))
          setSent(true)
        }}>
          <TextField label="E-mail address" type="email" required autoComplete="username" autoFocus value={email}
            onChange={(e) => setEmail(e.target.value)} />
        </AccessForm>
      )}
      <FrameLinks>
        <Link to={'/sign-in' as string}>Back to sign-in</Link>
        {sent && <Link to="." onClick={() => setSent(false)}>Send to another address</Link>}
      </FrameLinks>
    </Frame>
  )
}
