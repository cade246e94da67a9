import { useState } from 'react'
import { texts } from '#texts/functions'
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
    <Dialog title={texts.testOf(signatureOf(of))} open side wide onClose={onClose}>
      <form className={css.stack} onSubmit={(e) => {
        e.preventDefault()
        void call()
      }}>
        {of.parameters.map((p, i) => (
          <div key={p.name} className={css.argument}>
            <TextField label={p.name} hint={p.type} value={values[i] ?? ''} disabled={values[i] === null}
              onChange={(e) => set(i, e.target.value)} />
            <CheckField label={texts.null} aria-label={texts.nameIsNull(p.name)} checked={values[i] === null}
              onChange={(e) => set(i, e.target.checked ? null : '')} />
          </div>
        ))}
        <SelectField label={texts.callAs} value={caller} onChange={(e) => setCaller(e.target.value)}>
          <option value="owner">{texts.ownerBySQL}</option>
          <option value="service_role">{texts.serviceRoleByTheRows}</option>
          <option value="anon">{texts.anonByTheRowsAPI}</option>
          <option value="user">{texts.anEndUserByThe}</option>
        </SelectField>
        {caller === 'user' && (
          <TextField label={texts.uuidOfTheUser} required value={user} onChange={(e) => setUser(e.target.value)} />
        )}
        {caller === 'owner'
          ? <CheckField label={texts.keepWhatItWrites} checked={keeps} hint={texts.otherwiseTheCallMayNot}
            onChange={(e) => setKeeps(e.target.checked)} />
          : <p className={css.quiet}>{texts.aCallByTheRows}</p>}
        <div>
          <Button needs="runSQL" type="submit" look="primary" busy={outcome.status === 'running'}>{texts.callFunction}</Button>
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
        [texts.messageSQLSTATE(report.message, report.sqlstate), report.detail, report.hint, report.context]
          .filter((t) => t !== '').join('\n'))} />
    }
    case 'rows':
      return <div className={css.grid}><ResultGrid result={outcome.result} /></div>
    case 'answer':
      return <Code label={texts.answer} text={outcome.text === '' ? texts.noContent : outcome.text} />
  }
}

async function callBySQL(
  project: string, of: FunctionInfo, parameters: (string | null)[], readOnly: boolean,
): Promise<Result> {
  const { results } = await runSQL(project, { query: callOf(of), parameters, readOnly, maxRows: 1000 })
  const [result] = results
  if (result === undefined) throw new Error(texts.theAnswerHasNoResult)

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
