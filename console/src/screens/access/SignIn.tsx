import { useState } from 'react'
import { Link, useNavigate, useSearch } from '@tanstack/react-router'
import { texts } from '#texts/access'
import { ApiError, api, read } from '../../api/client'
import { signIn } from '../../api/session'
import { TextField } from '../../components/Field'
import { toast } from '../../components/Toast'
import { about, AccessForm, Frame, FrameLinks } from './Frame'
import { InvitationNote, useInvitation } from './invitation'
import { screenAfter } from './next'

/** Signs a person in, with a second factor where the account has one. */
export function SignIn() {
  const { next, invitation } = useSearch({ strict: false }) as { next?: unknown; invitation?: string }
  const invited = useInvitation(invitation)
  const navigate = useNavigate()
  const [email, setEmail] = useState<string>()
  const [password, setPassword] = useState('')
  const [code, setCode] = useState<string>() // undefined: no code was asked for

  const address = email ?? invited.data?.email ?? ''

  async function submit() {
    await signIn({ email: address, password, ...(code !== undefined && { code }) })
    if (invitation !== undefined) await accept(invitation)
    await navigate({ to: screenAfter(next) })
  }

  function onFailure(error: unknown): boolean {
    if (!(error instanceof ApiError) || error.code !== 'second_factor_required') return false

    setCode('')
    return true
  }

  return (
    <Frame title={texts.signIn} lead={about}>
      <InvitationNote invitation={invitation} query={invited} />
      <AccessForm action={texts.signIn} onSubmit={submit} onFailure={onFailure}>
        {code === undefined ? (
          <>
            <TextField label={texts.eMailAddress} type="email" required autoComplete="username" autoFocus value={address}
              onChange={(e) => setEmail(e.target.value)} />
            <TextField label={texts.password} type="password" required autoComplete="current-password" value={password}
              onChange={(e) => setPassword(e.target.value)} />
          </>
        ) : (
          <TextField key="code" label={texts.codeOfYourSecondFactor} required autoComplete="one-time-code" autoFocus
            hint={texts.sixDigitsFromYourApp} value={code}
            onChange={(e) => setCode(e.target.value.trim())} />
        )}
      </AccessForm>
      <FrameLinks>
        {code === undefined
          ? <Link to={'/forgotten' as string}>{texts.forgottenPassword}</Link>
          : <Link to="." onClick={() => setCode(undefined)}>{texts.useAnotherAccount}</Link>}
        <Link to={'/sign-up' as string} search={{ next, invitation } as never}>{texts.createAnAccount}</Link>
      </FrameLinks>
    </Frame>
  )
}

/** Joins the organization of an invitation. A failure leaves the person signed in, with the reason. */
async function accept(token: string) {
  try {
    const { content } = await read(api.POST('/invitations/accept', { body: { token } }))
    toast(texts.youAreAMemberOf(content.name))
  } catch (error) {
    toast(error instanceof Error ? error.message : String(error), 'danger')
  }
}
