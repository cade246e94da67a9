import { useState } from 'react'
import { texts } from '#texts/shell'
import { ApiError } from '../api/failure'
import { signIn, type User } from '../api/session'
import { FormDialog } from '../components/Dialog'
import { TextField } from '../components/Field'
import { queries } from '../queries'

/** Asks for the password when the session ends under a person's hands. The screen stays, with all that was typed. */
export function SignInAgain({ user, onLeave }: { user: User; onLeave: () => void }) {
  const [password, setPassword] = useState('')
  const [code, setCode] = useState<string>() // undefined: no code was asked for

  async function submit() {
    try {
      await signIn({ email: user.email, password, ...(code !== undefined && { code }) })
    } catch (error) {
      if (error instanceof ApiError && error.code === 'second_factor_required') setCode('')
      throw error
    }
    void queries.invalidateQueries()
  }

  return (
    <FormDialog title={texts.yourSessionHasEnded} open onClose={onLeave} cancel={texts.leave} action={texts.signIn} onSubmit={submit} stays>
      <p>{texts.signInToGoOn}</p>
      <TextField label={texts.eMailAddress} type="email" readOnly autoComplete="username" value={user.email} />
      <TextField label={texts.password} type="password" required autoFocus autoComplete="current-password" value={password}
        onChange={(e) => setPassword(e.target.value)} />
      {code !== undefined && (
        <TextField label={texts.codeOfYourSecondFactor} required autoComplete="one-time-code" value={code}
          onChange={(e) => setCode(e.target.value.trim())} />
      )}
    </FormDialog>
  )
}
