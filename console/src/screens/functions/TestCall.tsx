import { useState } from 'react'
import { sendJSON } from '../../api/client'
import { Code } from '../../components/Bits'
import { Button } from '../../components/Button'
import { Dialog } from '../../components/Dialog'
import { CheckField, SelectField, TextField } from '../../components/Field'
import { ResultGrid } from '../../components/ResultGrid'
import { runSQL, SQLError, type Result } from '../../components/runSQL'
import { FailureNote } from '../../components/States'
import { callOf, rpcBody, signatureOf, type FunctionInfo } from './call'
import css from './Functions.module.css'

type Outcome = { status: 'none' } | { status: 'running' } | { status: 'failed'; error: unknown }
  | { status: 'rows'; result: Result } | { status: 'answer'; text: string }

/** Calls a function with values that a person types. */
export function TestCall({ project, of, onClose }: { project: string; of: FunctionInfo; onClose: () => void }) {
  const [values, setValues] = useState<(string | null)[]>(of.parameters.map(() => ''))
  const [caller, setCaller] = useState('owner')
  const [user, setUser] = useState('')
  const [keeps, setKeeps] = useState(false)
  const [outcome, setOutcome] = useState<Outcome>({ status: 'none' })
  const set = (at: number, value: string | null) => setValues(values.map((v, i) => (i === at ? value : v)))

  async function call() {
    setOutcome({ status: 'running' })
    try {
      setOutcome(caller === 'owner'
        ? { status: 'rows', result: await callBySQL(project, of, values, !keeps) }
        : { status: 'answer', text: await callByRequest(project, of, values, caller === 'user' ? `user:${user}` : caller) })
    } catch (error) {
      setOutcome({ status: 'failed', error })
    }
  }

  return (
    <Dialog title={`Test ${signatureOf(of)}`} open side wide onClose={onClose}>
      <form className={css.stack} onSubmit={(e) => {
        e.preventDefault()
        void call()
      }}>
        {of.parameters.map((p, i) => (
          <div key={p.name} className={css.argument}>
            <TextField label={p.name} hint={p.type} value={values[i] ?? ''} disabled={values[i] === null}
              onChange={(e) => set(i, e.target.value)} />
            <CheckField label="null" aria-label={`${p.name} is null`} checked={values[i] === null}
              onChange={(e) => set(i, e.target.checked ? null : '')} />
          </div>
        ))}
        <SelectField label="Call as" value={caller} onChange={(e) => setCaller(e.target.value)}>
          <option value="owner">owner, by SQL</option>
          <option value="service_role">service role, by the rows API</option>
          <option value="anon">anon, by the rows API</option>
          <option value="user">an end user, by the rows API</option>
        </SelectField>
        {caller === 'user' && (
          <TextField label="UUID of the user" required value={user} onChange={(e) => setUser(e.target.value)} />
        )}
        {caller === 'owner'
          ? <CheckField label="Keep what it writes" checked={keeps} hint="Otherwise the call may not write."
            onChange={(e) => setKeeps(e.target.checked)} />
          : <p className={css.quiet}>A call by the rows API keeps what it writes.</p>}
        <div>
          <Button needs="runSQL" type="submit" look="primary" busy={outcome.status === 'running'}>Call function</Button>
        </div>
        <Shown outcome={outcome} />
      </form>
    </Dialog>
  )
}

function Shown({ outcome }: { outcome: Outcome }) {
  switch (outcome.status) {
    case 'none':
    case 'running':
      return null
    case 'failed': {
      const report = outcome.error instanceof SQLError ? outcome.error.report : null
      return <FailureNote error={report === null ? outcome.error : new Error(
        [`${report.message} (SQLSTATE ${report.sqlstate})`, report.detail, report.hint, report.context]
          .filter((t) => t !== '').join('\n'))} />
    }
    case 'rows':
      return <div className={css.grid}><ResultGrid result={outcome.result} /></div>
    case 'answer':
      return <Code label="answer" text={outcome.text === '' ? 'No content' : outcome.text} />
  }
}

async function callBySQL(
  project: string, of: FunctionInfo, parameters: (string | null)[], readOnly: boolean,
): Promise<Result> {
  const { results } = await runSQL(project, { query: callOf(of), parameters, readOnly, maxRows: 1000 })
  const [result] = results
  if (result === undefined) throw new Error('The answer has no result.')

  return result
}

async function callByRequest(
  project: string, of: FunctionInfo, values: (string | null)[], as: string,
): Promise<string> {
  const answer = await sendJSON<unknown>(`/projects/${project}/rest/v1/rpc/${encodeURIComponent(of.name)}`, {
    method: 'POST', json: rpcBody(of, values),
    headers: { 'Content-Profile': of.schema, ...(as !== 'service_role' && { 'X-Socle-As': as }) },
  })

  return answer === null ? '' : JSON.stringify(answer, null, 2)
}
