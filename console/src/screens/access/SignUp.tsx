import { useState } from 'react'
import { Link, useNavigate, useSearch } from '@tanstack/react-router'
import { texts } from '#texts/access'
import { ApiError, api, read } from '../../api/client'
import { signIn } from '../../api/session'
import { TextField } from '../../components/Field'
import { about, AccessForm, Frame, FrameLinks, More } from './Frame'
import { InvitationNote, useInvitation } from './invitation'
import { screenAfter } from './next'

const fields = ['username', 'email', 'password', 'setup_token', 'invitation_token'] as const
type Name = (typeof fields)[number]

/** Returns the setup token in the link that a new server prints. A fragment is never sent. */
const setupToken = () => new URLSearchParams(location.hash.slice(1)).get('setup') ?? ''

/** Creates an account and signs it in. */
export function SignUp() {
  const { next, invitation } = useSearch({ strict: false }) as { next?: unknown; invitation?: string }
  const invited = useInvitation(invitation)
  const navigate = useNavigate()
  const [form, setForm] = useState({ username: '', password: '', setup_token: setupToken() })
  const [email, setEmail] = useState<string>()
  const [failure, setFailure] = useState<ApiError>()

  const address = email ?? invited.data?.email ?? ''
  const edit = (name: keyof typeof form) => (e: { target: { value: string } }) =>
    setForm({ ...form, [name]: e.target.value })
  const fault = (name: Name) => {
    const message = failure?.field(name)
    return message === undefined ? {} : { error: message }
  }

  async function submit() {
    setFailure(undefined)
    const { username, password, setup_token } = form
    await read(api.POST('/users', { body: {
      username, email: address, password,
      ...(setup_token !== '' && { setup_token }),
      ...(invitation !== undefined && { invitation_token: invitation }),
    } }))
    await signIn({ email: address, password })
    await navigate({ to: screenAfter(next) })
  }

  function onFailure(error: unknown): boolean {
    if (!(error instanceof ApiError)) return false

    setFailure(error)
    return error.fields.length > 0 && error.fields.every((f) => f.field !== 'invitation_token' && known(f.field))
  }

  return (
    <Frame title={texts.createAnAccount} lead={about}>
      <InvitationNote invitation={invitation} query={invited} />
      <AccessForm action={texts.createAccount} onSubmit={submit} onFailure={onFailure}>
        <TextField label={texts.userName} required autoComplete="nickname" autoFocus value={form.username}
          hint={texts.threeToThe100LettersDigits} {...fault('username')} onChange={edit('username')} />
        <TextField label={texts.eMailAddress} type="email" required autoComplete="username" value={address}
          readOnly={invited.data !== undefined} {...fault('email')} onChange={(e) => setEmail(e.target.value)} />
        <TextField label={texts.password} type="password" required autoComplete="new-password" value={form.password}
          hint={texts.atLeastEightCharacters} {...fault('password')} onChange={edit('password')} />
        {invitation === undefined && (
          <More title={texts.setupToken} open={failure?.code === 'sign_up_closed'}>
            <TextField label={texts.setupToken} autoComplete="off" value={form.setup_token}
              hint={texts.aNewServerPrintsIt}
              {...fault('setup_token')} onChange={edit('setup_token')} />
          </More>
        )}
        {failure?.code === 'sign_up_closed' && <p>{texts.askAnAdministratorForAn}</p>}
      </AccessForm>
      <FrameLinks>
        <Link to={'/sign-in' as string} search={{ next, invitation } as never}>{texts.iHaveAnAccount}</Link>
      </FrameLinks>
    </Frame>
  )
}

function known(field: string): field is Name {
  return fields.some((name) => name === field)
}
