import { useState } from 'react'
import { texts } from '#texts/endusers'
import { api, read, type Schemas } from '../../api/client'
import { Code, Time } from '../../components/Bits'
import { Button } from '../../components/Button'
import { Confirm, Dialog, FormDialog } from '../../components/Dialog'
import { SelectField, TextField } from '../../components/Field'
import { Card, Row, Stack } from '../../components/Page'
import { FailureNote } from '../../components/States'
import { toast } from '../../components/Toast'
import { queries } from '../../queries'
import { randomPassword } from './NewEndUser'
import { SendMail } from './SendMail'

type Account = Schemas['Account']
type Asked = 'password' | 'mail' | 'ban' | 'sessions' | 'token' | null

interface Props {
  project: string
  account: Account
  onClose: () => void
}

const pathOf = (project: string, account: Account) => ({ projectUUID: project, endUserUUID: account.uuid })

/** What decides whether a user gets in: password, ban, sessions; and a token to see what they see. */
export function Access({ project, account }: { project: string; account: Account }) {
  const [asked, setAsked] = useState<Asked>(null)
  const banned = account.bannedUntil !== null && Date.parse(account.bannedUntil) > Date.now()
  const props = { project, account, onClose: () => setAsked(null) }

  async function lift() {
    try {
      await change(project, account, { ban_duration: 'none' })
      toast(texts.theBanIsLifted)
    } catch (error) {
      toast(error instanceof Error ? error.message : String(error), 'danger')
    }
  }

  return (
    <Card title={texts.access} lead={banned && <>{texts.bannedEndsTime(<Time at={account.bannedUntil} />)}</>}>
      <Row>
        <Button needs="updateEndUser" onClick={() => setAsked('password')}>{texts.setPassword}</Button>
        {account.email !== '' && <Button needs="sendEndUserMail" onClick={() => setAsked('mail')}>{texts.sendMail}</Button>}
        {banned ? <Button needs="updateEndUser" onClick={() => void lift()}>{texts.liftBan}</Button>
          : <Button needs="updateEndUser" onClick={() => setAsked('ban')}>{texts.banUser}</Button>}
        <Button needs="deleteEndUserSessions" onClick={() => setAsked('sessions')}>{texts.endSessions}</Button>
        <Button needs="createEndUserToken" onClick={() => setAsked('token')}>{texts.createTestToken}</Button>
      </Row>
      {asked === 'password' && <SetPassword {...props} />}
      {asked === 'mail' && <SendMail {...props} />}
      {asked === 'ban' && <Ban {...props} />}
      {asked === 'sessions' && <EndSessions {...props} />}
      {asked === 'token' && <TestToken {...props} />}
    </Card>
  )
}

async function change(project: string, account: Account, body: Schemas['EndUserBody']) {
  await read(api.PUT('/projects/{projectUUID}/end-users/{endUserUUID}', {
    params: { path: pathOf(project, account) },
    body,
  }))
  await queries.invalidateQueries({ queryKey: ['end-users', project] })
}

function SetPassword({ project, account, onClose }: Props) {
  const [password, setPassword] = useState('')

  return (
    <FormDialog title={texts.setPassword} open onClose={onClose} action={texts.setPassword} disabled={password === ''}
      onSubmit={() => change(project, account, { password }).then(() => toast(texts.thePasswordIsSet))}>
      <TextField label={texts.newPassword} value={password} autoComplete="off" spellCheck={false} autoFocus
        hint={texts.aNewPasswordEndsAll}
        onChange={(e) => setPassword(e.target.value)} />
      <div>
        <Button onClick={() => setPassword(randomPassword())}>{texts.generatePassword}</Button>
      </div>
    </FormDialog>
  )
}

const durations = { '1h': texts.anHour, '24h': 'A day', '168h': 'A week', '720h': '30 days', '876000h': texts.forGood }

function Ban({ project, account, onClose }: Props) {
  const [duration, setDuration] = useState('24h')

  return (
    <FormDialog title={texts.banUser} open onClose={onClose} action={texts.banUser} danger
      onSubmit={() => change(project, account, { ban_duration: duration }).then(() => toast(texts.theUserIsBanned))}>
      <p>{texts.theUserCannotSignIn}</p>
      <SelectField label={texts.duration} value={duration} onChange={(e) => setDuration(e.target.value)}>
        {Object.entries(durations).map(([value, text]) => <option key={value} value={value}>{text}</option>)}
      </SelectField>
    </FormDialog>
  )
}

function EndSessions({ project, account, onClose }: Props) {
  async function end() {
    const { content } = await read(api.DELETE('/projects/{projectUUID}/end-users/{endUserUUID}/sessions', {
      params: { path: pathOf(project, account) },
    }))
    toast(content.sessions === 1 ? texts.oneSessionIsEnded : texts.sessionsAreEnded(content.sessions))
    await queries.invalidateQueries({ queryKey: ['end-users', project, 'sessions'] })
  }

  return (
    <Confirm title={texts.endAllSessions} open onClose={onClose} action={texts.endSessions} onSubmit={end}>
      <p>{texts.theUserHasToSign}</p>
    </Confirm>
  )
}

/** Makes a token with the user's claims, which is shown once. */
function TestToken({ project, account, onClose }: Props) {
  const [made, setMade] = useState<{ token: string; expiresAt: string } | null>(null)
  const [failure, setFailure] = useState<unknown>(null)
  const [busy, setBusy] = useState(false)

  async function create() {
    setBusy(true)
    setFailure(null)
    try {
      const { content, metadata } = await read(api.POST('/projects/{projectUUID}/end-user-tokens', {
        params: { path: { projectUUID: project } },
        body: { user: account.uuid },
      }))
      setMade({ token: metadata.token, expiresAt: content.expiresAt })
    } catch (error) {
      setFailure(error)
    } finally {
      setBusy(false)
    }
  }

  return (
    <Dialog title={texts.testToken} open onClose={onClose} wide>
      <Stack>
        <p>
          {texts.theTokenIsValidFor}
        </p>
        {made === null ? (
          <Row>
            <Button look="primary" busy={busy} onClick={() => void create()}>{texts.createToken}</Button>
          </Row>
        ) : (
          <>
            <Code label={texts.token} text={made.token} />
            <p>{texts.expiresTimeTryIt(<Time at={made.expiresAt} />)}</p>
            <Code label={texts.curlCommand} text={texts.curlProjectsRestV1TABLE(location.origin, project)
              + texts.hApikeyPUBLISHABLEKEYH(made.token)} />
          </>
        )}
        {failure !== null && <FailureNote error={failure} />}
      </Stack>
    </Dialog>
  )
}
