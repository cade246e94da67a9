import { useState } from 'react'
import { texts } from '#texts/edgefunctions'
import { api, ApiError, read, type Schemas } from '../../api/client'
import { Badge } from '../../components/Bits'
import { Button } from '../../components/Button'
import { SelectField, TextArea, TextField } from '../../components/Field'
import { Card, Row } from '../../components/Page'
import { FailureNote } from '../../components/States'
import { queries } from '../../queries'
import { methods, parseHeaders, readAnswer, type Answer } from './call'
import css from './EdgeFunctions.module.css'

type Outcome = { status: 'none' } | { status: 'running' } | { status: 'failed'; error: unknown } | { status: 'answered'; answer: Answer }
type Caller = 'nobody' | 'key' | 'user'

/** Calls a function with a request that a person types. */
export function TestCall({ project, of }: { project: string; of: Schemas['EdgeFunction'] }) {
  const [method, setMethod] = useState<string>('POST')
  const [path, setPath] = useState('')
  const [headers, setHeaders] = useState('Content-Type: application/json')
  const [body, setBody] = useState('{"name": "Ada"}')
  const [caller, setCaller] = useState<Caller>(of.verifyJwt ? 'user' : 'nobody')
  const [credential, setCredential] = useState('')
  const [outcome, setOutcome] = useState<Outcome>({ status: 'none' })
  const parsed = parseHeaders(headers)
  const hasBody = method !== 'GET'

  async function call() {
    if (typeof parsed === 'string') return

    setOutcome({ status: 'running' })
    try {
      const token = await tokenOf(project, caller, credential)
      setOutcome({ status: 'answered', answer: await callFunction(`/projects/${project}/functions/v1/${encodeURIComponent(of.name)}${path}`, {
        method, headers: [...parsed, ...(token === '' ? [] : [['Authorization', `Bearer ${token}`] as [string, string]])],
        ...(hasBody && { body }),
      }) })
      await queries.invalidateQueries({ queryKey: ['edge functions', project, 'log'] })
    } catch (error) {
      setOutcome({ status: 'failed', error })
    }
  }

  return (
    <Card title={texts.testCall} lead={texts.aRequestOfThisPage}>
      <form className={css.form} onSubmit={(e) => {
        e.preventDefault()
        void call()
      }}>
        <SelectField label={texts.method} value={method} onChange={(e) => setMethod(e.target.value)}>
          {methods.map((m) => <option key={m}>{m}</option>)}
        </SelectField>
        <TextField label={texts.pathAndQueryBehindThe} value={path} placeholder={texts.ordersLimitFive} pattern="([\/?].*)?"
          hint={texts.emptyOrItBeginsWith} onChange={(e) => setPath(e.target.value)} />
        <SelectField label={texts.callAs} value={caller} onChange={(e) => {
          setCaller(e.target.value as Caller)
          setCredential('')
        }}>
          <option value="nobody">{texts.nobody}</option>
          <option value="user">{texts.aUserOfYourApplication}</option>
          <option value="key">{texts.theHolderOfAKey}</option>
        </SelectField>
        {caller === 'user' && (
          <TextField label={texts.addressOrUUIDOfThe} required value={credential} autoComplete="off"
            hint={texts.callsWithATokenOf} onChange={(e) => setCredential(e.target.value)} />
        )}
        {caller === 'key' && (
          <TextField label={texts.keyOrToken} type="password" required value={credential} autoComplete="off" spellCheck={false}
            hint={texts.itIsSentToThe} onChange={(e) => setCredential(e.target.value.trim())} />
        )}
        <TextArea label={texts.headers} rows={2} value={headers} spellCheck={false} error={typeof parsed === 'string' ? parsed : undefined}
          onChange={(e) => setHeaders(e.target.value)} />
        {hasBody && <TextArea label={texts.body} rows={4} value={body} spellCheck={false} onChange={(e) => setBody(e.target.value)} />}
        <Row>
          <Button type="submit" look="primary" busy={outcome.status === 'running'} disabled={typeof parsed === 'string'}>
            {texts.callFunction}
          </Button>
        </Row>
        {outcome.status === 'failed' && <FailureNote error={outcome.error} />}
        {outcome.status === 'answered' && <Answered answer={outcome.answer} />}
      </form>
    </Card>
  )
}

/** Returns the token of a call, "" for none. */
async function tokenOf(project: string, caller: Caller, credential: string): Promise<string> {
  if (caller !== 'user') return caller === 'key' ? credential : ''

  const { metadata } = await read(api.POST('/projects/{projectUUID}/end-user-tokens', {
    params: { path: { projectUUID: project } }, body: { user: credential },
  }))

  return metadata.token
}

/**
 * Calls a function's address. The console's client is not for it: its token of a person would be in
 * the hands of the function's author, and the cookie in those of its answer.
 */
async function callFunction(address: string, init: RequestInit): Promise<Answer> {
  const began = performance.now()
  let response: Response
  try {
    response = await fetch(address, { ...init, credentials: 'omit', redirect: 'manual' })
  } catch (cause) {
    throw new ApiError(0, undefined, cause)
  }

  return readAnswer(response, began)
}

function Answered({ answer: a }: { answer: Answer }) {
  return (
    <>
      <p role="status">
        <Badge tone={a.status > 0 && a.status < 400 ? 'success' : 'danger'}>{a.status === 0 ? texts.redirect : a.status}</Badge>{' '}{texts.inDurationMsMs(a.durationMs.toFixed(0))}
      </p>
      <pre className={css.body} tabIndex={0} aria-label={texts.answer}>{a.body === '' ? 'No content' : a.body}</pre>
      <details>
        <summary>{texts.headersOfTheAnswer}</summary>
        <pre className={css.body}>{a.headers.map(([name, value]) => `${name}: ${value}`).join('\n')}</pre>
      </details>
    </>
  )
}
