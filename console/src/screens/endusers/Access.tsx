import { useState } from 'react'
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
      toast('The ban is lifted.')
    } catch (error) {
      toast(error instanceof Error ? error.message : String(error), 'danger')
    }
  }

  return (
    <Card title="Access" lead={banned && <>Banned, ends <Time at={account.bannedUntil} />.</>}>
      <Row>
        <Button needs="updateEndUser" onClick={() => setAsked('password')}>Set password</Button>
        {account.email !== '' && <Button needs="sendEndUserMail" onClick={() => setAsked('mail')}>Send mail</Button>}
        {banned ? <Button needs="updateEndUser" onClick={() => void lift()}>Lift ban</Button>
          : <Button needs="updateEndUser" onClick={() => setAsked('ban')}>Ban user</Button>}
        <Button needs="deleteEndUserSessions" onClick={() => setAsked('sessions')}>End sessions</Button>
        <Button needs="createEndUserToken" onClick={() => setAsked('token')}>Create test token</Button>
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
    <FormDialog title="Set password" open onClose={onClose} action="Set password" disabled={password === ''}
      onSubmit={() => change(project, account, { password }).then(() => toast('The password is set.'))}>
      <TextField label="New password" value={password} autoComplete="off" spellCheck={false} autoFocus
        hint="A new password ends all sessions of the user. No mail is sent: tell it to the user."
        onChange={(e) => setPassword(e.target.value)} />
      <div>
        <Button onClick={() => setPassword(randomPassword())}>Generate password</Button>
      </div>
    </FormDialog>
  )
}

const durations = { '1h': 'An hour', '24h': 'A day', '168h': 'A week', '720h': '30 days', '876000h': 'For good' }

function Ban({ project, account, onClose }: Props) {
  const [duration, setDuration] = useState('24h')

  return (
    <FormDialog title="Ban user" open onClose={onClose} action="Ban user" danger
      onSubmit={() => change(project, account, { ban_duration: duration }).then(() => toast('The user is banned.'))}>
      <p>The user cannot sign in or renew a session. An access token that they hold works until it expires.</p>
      <SelectField label="Duration" value={duration} onChange={(e) => setDuration(e.target.value)}>
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
    toast(content.sessions === 1 ? 'One session is ended.' : `${content.sessions} sessions are ended.`)
    await queries.invalidateQueries({ queryKey: ['end-users', project, 'sessions'] })
  }

  return (
    <Confirm title="End all sessions" open onClose={onClose} action="End sessions" onSubmit={end}>
      <p>The user has to sign in again on every device. The rows API accepts their access tokens until these expire.</p>
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
    <Dialog title="Test token" open onClose={onClose} wide>
      <Stack>
        <p>
          The token is valid for five minutes, for rows and files, with the claims of the user's own tokens. The audit log
          has who made it, and for whom.
        </p>
        {made === null ? (
          <Row>
            <Button look="primary" busy={busy} onClick={() => void create()}>Create token</Button>
          </Row>
        ) : (
          <>
            <Code label="token" text={made.token} />
            <p>Expires <Time at={made.expiresAt} />. Try it:</p>
            <Code label="curl command" text={
              `curl '${location.origin}/projects/${project}/rest/v1/TABLE?limit=5' \\\n`
              + `  -H 'apikey: PUBLISHABLE_KEY' \\\n  -H 'Authorization: Bearer ${made.token}'`
            } />
          </>
        )}
        {failure !== null && <FailureNote error={failure} />}
      </Stack>
    </Dialog>
  )
}
