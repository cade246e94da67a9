import { useEffect, useState } from 'react'
import { texts } from '#texts/sql'
import { Button } from '../../components/Button'
import { plain } from '../../components/exact'
import { Menu } from '../../components/Menu'
import { ResultGrid } from '../../components/ResultGrid'
import { SQLError, type Answer, type Result } from '../../components/runSQL'
import { FailureNote } from '../../components/States'
import { saveText } from '../../components/transfer'
import { Chart } from './Chart'
import { csvOf, jsonRowsOf } from './exporting'
import { planOf } from './plan'
import { PlanTree } from './PlanTree'
import type { Outcome as State } from './useRuns'
import css from './SQL.module.css'

/** What a run brought: results, or the error. */
export function Outcome({ outcome }: { outcome: State }) {
  switch (outcome.status) {
    case 'none':
      return <p className={css.hint}>{texts.ctrlEnterRunsTheSelection}</p>
    case 'running':
      return <Running since={outcome.since} />
    case 'cancelled':
      return <p className={css.hint} role="status">{texts.canceledWhatHadNotFinished}</p>
    case 'failed':
      return <Failed error={outcome.error} readOnly={outcome.readOnly} />
    case 'done':
      return <Done answer={outcome.answer} readOnly={outcome.readOnly} as={outcome.as} />
  }
}

function Running({ since }: { since: number }) {
  const [now, setNow] = useState(since)
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 200)
    return () => clearInterval(timer)
  }, [])

  return <p className={css.hint} role="status">{texts.runningForS((Math.max(0, now - since) / 1000).toFixed(1))}</p>
}

function Failed({ error, readOnly }: { error: unknown; readOnly: boolean }) {
  const report = error instanceof SQLError ? error.report : null
  if (report === null) return <FailureNote error={error} />

  return (
    <div className={css.failure} role="alert">
      <p>
        <strong>{report.message}</strong>
      </p>
      {report.detail !== '' && <p>{report.detail}</p>}
      {report.hint !== '' && <p>{texts.hint(report.hint)}</p>}
      {report.context !== '' && <pre>{report.context}</pre>}
      {report.sqlstate === '25006' && readOnly && <p>{texts.allowWritesAboveToRun}</p>}
      <p className={css.meta}>
        {texts.sqlstateStatement(report.sqlstate, report.statement)}
        {report.position > 0 && texts.characterPosition(report.position)}
        {texts.requestIdNothingWasKept(error instanceof SQLError && error.requestId !== '' && texts.requestRequestId(error.requestId))}
      </p>
    </div>
  )
}

function Done({ answer, readOnly, as }: { answer: Answer; readOnly: boolean; as: string }) {
  const [chosen, setChosen] = useState(-1)
  const { results, notes } = answer
  const last = results.findLastIndex((r) => r.columns.length > 0)
  const at = chosen >= 0 && chosen < results.length ? chosen : last === -1 ? results.length - 1 : last
  const result = results[at]

  return (
    <>
      <p className={css.meta} role="status">
        {texts.countInDurationMsMs(results.length === 1 ? texts.oneStatement : texts.countStatements(results.length), answer.durationMs.toFixed(1))}
        {as !== '' && (as.startsWith('user:') ? texts.asTheUser : texts.as(as))}
        {readOnly ? texts.readOnly : texts.changesAreKept}
      </p>
      {notes.map((n) => (
        <p key={`${n.statement}-${n.text}`} className={css.note}>{texts.lineText(n.line, n.text)}</p>
      ))}
      {results.length > 1 && (
        <div className={css.tabs} role="group" aria-label={texts.results}>
          {results.map((r, i) => (
            <span key={i} className={css.tab} data-active={i === at ? '' : undefined}>
              <button type="button" aria-pressed={i === at} onClick={() => setChosen(i)}>
                {i + 1} {r.command || texts.leftOut}
              </button>
            </span>
          ))}
        </div>
      )}
      {result !== undefined && <ResultView key={at} result={result} />}
    </>
  )
}

function ResultView({ result }: { result: Result }) {
  const [chart, setChart] = useState(false)
  const plan = result.command === 'EXPLAIN' ? planOf(plain(result.rows[0]?.[0] ?? null)) : null
  if (plan !== null) return <PlanTree plan={plan} />
  if (result.columns.length === 0) {
    return <p className={css.hint}>{result.command}{result.rowCount !== null && `: ${countRows(result.rowCount)}`}</p>
  }

  return (
    <>
      <div className={css.resultBar}>
        <span className={css.meta}>
          {countRows(result.rows.length)}
          {result.truncated && <strong>{texts.moreWereLeftOutAdd}</strong>}
        </span>
        <Button look="quiet" onClick={() => setChart(!chart)}>{chart ? texts.showRows : texts.showChart}</Button>
        <Menu label={texts.exportResult} trigger={texts.export} items={[
          { text: texts.csv, onSelect: () => saveText(csvOf(result), 'result.csv') },
          { text: texts.json, onSelect: () => saveText(jsonRowsOf(result), 'result.json') },
          { text: texts.copyAsCSV, onSelect: () => void navigator.clipboard.writeText(csvOf(result)) },
        ]} />
      </div>
      {chart ? <Chart result={result} /> : <ResultGrid result={result} />}
    </>
  )
}

const countRows = (n: number) => (n === 1 ? texts.oneRow : texts.countRows(n.toLocaleString()))
