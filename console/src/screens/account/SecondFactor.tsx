import { useState } from 'react'
import { useQuery } from '@tanstack/react-query'
import { texts } from '#texts/account'
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
    <Card title={texts.secondFactor} lead={texts.aCodeFromAnApp}>
      <Loaded query={query} rows={1}>
        {({ state }) => (
          <Row>
            {state?.isConfirmed
              ? <Badge tone="success">{texts.on}</Badge>
              : <Badge tone="warning">{state === null ? texts.off : texts.notConfirmedYet}</Badge>}
            {state?.isConfirmed && <span>{texts.recoveryCodesUnusedRecoveryCodes(state.recoveryCodes)}</span>}
            {!state?.isConfirmed && (
              <Button look="primary" onClick={() => setStep('create')}>{texts.setUpSecondFactor}</Button>
            )}
            {state !== null && <Button look="danger" onClick={() => setStep('remove')}>{texts.removeSecondFactor}</Button>}
          </Row>
        )}
      </Loaded>
      {step === 'create' && <Create onClose={() => setStep(undefined)} onCreated={setFactor} />}
      {step === 'remove' && <Remove state={query.data?.state ?? null} onClose={() => setStep(undefined)} />}
      {factor && (
        <ConfirmFactor factor={factor} onClose={() => setFactor(undefined)} onConfirmed={setRecovery} />
      )}
      {recovery && (
        <ShownOnce title={texts.recoveryCodes} onClose={() => setRecovery(undefined)}
          values={[{ label: texts.recoveryCodes, value: recovery.join('\n') }]}>
          <p>{texts.eachSignsYouInOnce}</p>
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
    <FormDialog title={texts.setUpSecondFactor} open onClose={onClose} action={texts.continue} onSubmit={async () => {
      const { content } = await read(api.POST('/users/me/totp', { body: { password } }))
      onCreated(content)
      await changed()
    }}>
      <TextField label={texts.yourPassword} type="password" required autoFocus autoComplete="current-password" value={password}
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
    <FormDialog title={texts.addItToYourApp} open onClose={onClose} action={texts.turnOn} onSubmit={async () => {
      const { content } = await read(api.POST('/users/me/totp/confirm', { body: { code } }))
      onConfirmed(content.recoveryCodes)
      await changed()
    }}>
      <Stack>
        <p>{texts.enterThisSecretInYour}</p>
        <Copyable value={factor.secret} label={texts.theSecret} />
        <p>{texts.orGiveTheAppThe}</p>
        <Code text={factor.url} label={texts.theOtpauthAddress} />
      </Stack>
      <TextField label={texts.codeFromTheApp} required autoFocus inputMode="numeric" autoComplete="one-time-code" value={code}
        hint={texts.sixDigitsTheSecondFactor} onChange={(e) => setCode(e.target.value.trim())} />
    </FormDialog>
  )
}

function Remove({ state, onClose }: { state: State; onClose: () => void }) {
  const [password, setPassword] = useState('')
  const [code, setCode] = useState('')

  return (
    <Confirm title={texts.removeSecondFactor} open onClose={onClose} action={texts.removeSecondFactor} onSubmit={async () => {
      await read(api.DELETE('/users/me/totp', { body: { password, ...(code !== '' && { code }) } }))
      await changed()
    }}>
      <Stack>
        <p>{texts.yourPasswordAloneSignsYou}</p>
        <TextField label={texts.yourPassword} type="password" required autoComplete="current-password" value={password}
          onChange={(e) => setPassword(e.target.value)} />
        {state?.isConfirmed && (
          <TextField label={texts.code} required autoComplete="one-time-code" value={code}
            hint={texts.fromTheAppOrA} onChange={(e) => setCode(e.target.value.trim())} />
        )}
      </Stack>
    </Confirm>
  )
}
