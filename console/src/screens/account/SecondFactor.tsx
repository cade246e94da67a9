import { useState } from 'react'
import { useQuery } from '@tanstack/react-query'
import { ApiError, api, read, type Schemas } from '../../api/client'
import { Badge, Code, Copyable } from '../../components/Bits'
import { Button } from '../../components/Button'
import { Confirm, FormDialog } from '../../components/Dialog'
import { TextField } from '../../components/Field'
import { Card, Row, Stack } from '../../components/Page'
import { ShownOnce } from '../../components/ShownOnce'
import { Loaded } from '../../components/States'
import { queries } from '../../queries'

type State = Schemas['FactorState'] | null

const changed = () => queries.invalidateQueries({ queryKey: ['second factor'] })

/** Codes from an app, asked for at sign-in. */
export function SecondFactor() {
  const [step, setStep] = useState<'create' | 'remove'>()
  const [factor, setFactor] = useState<Schemas['NewFactor']>()
  const [recovery, setRecovery] = useState<string[]>()
  const query = useQuery({ queryKey: ['second factor'], queryFn: readState })

  return (
    <Card title="Second factor" lead="A code from an app on your phone, asked for at each sign-in.">
      <Loaded query={query} rows={1}>
        {({ state }) => (
          <Row>
            {state?.isConfirmed
              ? <Badge tone="success">on</Badge>
              : <Badge tone="warning">{state === null ? 'off' : 'not confirmed yet'}</Badge>}
            {state?.isConfirmed && <span>{state.recoveryCodes} unused recovery codes</span>}
            {!state?.isConfirmed && (
              <Button look="primary" onClick={() => setStep('create')}>Set up second factor</Button>
            )}
            {state !== null && <Button look="danger" onClick={() => setStep('remove')}>Remove second factor</Button>}
          </Row>
        )}
      </Loaded>
      {step === 'create' && <Create onClose={() => setStep(undefined)} onCreated={setFactor} />}
      {step === 'remove' && <Remove state={query.data?.state ?? null} onClose={() => setStep(undefined)} />}
      {factor && (
        <ConfirmFactor factor={factor} onClose={() => setFactor(undefined)} onConfirmed={setRecovery} />
      )}
      {recovery && (
        <ShownOnce title="Recovery codes" onClose={() => setRecovery(undefined)}
          values={[{ label: 'Recovery codes', value: recovery.join('\n') }]}>
          <p>Each signs you in once, if you lose your phone. Keep them where you keep passwords.</p>
        </ShownOnce>
      )}
    </Card>
  )
}

async function readState(): Promise<{ state: State }> {
  try {
    const { content } = await read(api.GET('/users/me/totp'))
    return { state: content }
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) return { state: null }
    throw error
  }
}

function Create({ onClose, onCreated }: { onClose: () => void; onCreated: (f: Schemas['NewFactor']) => void }) {
  const [password, setPassword] = useState('')

  return (
    <FormDialog title="Set up second factor" open onClose={onClose} action="Continue" onSubmit={async () => {
      const { content } = await read(api.POST('/users/me/totp', { body: { password } }))
      onCreated(content)
      await changed()
    }}>
      <TextField label="Your password" type="password" required autoFocus autoComplete="current-password" value={password}
        onChange={(e) => setPassword(e.target.value)} />
    </FormDialog>
  )
}

function ConfirmFactor({ factor, onClose, onConfirmed }: {
  factor: Schemas['NewFactor']
  onClose: () => void
  onConfirmed: (codes: string[]) => void
}) {
  const [code, setCode] = useState('')

  return (
    <FormDialog title="Add it to your app" open onClose={onClose} action="Turn on" onSubmit={async () => {
      const { content } = await read(api.POST('/users/me/totp/confirm', { body: { code } }))
      onConfirmed(content.recoveryCodes)
      await changed()
    }}>
      <Stack>
        <p>Enter this secret in your authenticator app, as a time-based code:</p>
        <Copyable value={factor.secret} label="the secret" />
        <p>Or give the app the whole address:</p>
        <Code text={factor.url} label="the otpauth address" />
      </Stack>
      <TextField label="Code from the app" required autoFocus inputMode="numeric" autoComplete="one-time-code" value={code}
        hint="Six digits. The second factor counts from then on." onChange={(e) => setCode(e.target.value.trim())} />
    </FormDialog>
  )
}

function Remove({ state, onClose }: { state: State; onClose: () => void }) {
  const [password, setPassword] = useState('')
  const [code, setCode] = useState('')

  return (
    <Confirm title="Remove second factor" open onClose={onClose} action="Remove second factor" onSubmit={async () => {
      await read(api.DELETE('/users/me/totp', { body: { password, ...(code !== '' && { code }) } }))
      await changed()
    }}>
      <Stack>
        <p>Your password alone signs you in from then on. The recovery codes become useless.</p>
        <TextField label="Your password" type="password" required autoComplete="current-password" value={password}
          onChange={(e) => setPassword(e.target.value)} />
        {state?.isConfirmed && (
          <TextField label="Code" required autoComplete="one-time-code" value={code}
            hint="From the app, or a recovery code." onChange={(e) => setCode(e.target.value.trim())} />
        )}
      </Stack>
    </Confirm>
  )
}
