import { ApiError, failureOf } from '../api/failure'
import { inProject, send } from '../api/client'
import { parseExact, plain, type Exact } from './exact'

export interface Result {
  command: string
  columns: { name: string; type: string }[]
  rows: Exact[][]
  rowCount: number | null
  truncated: boolean
}

export interface Answer {
  results: Result[]
  notes: { statement: number; line: number; text: string }[]
  durationMs: number
}

export interface Statement {
  query: string
  parameters: (string | null)[]
  readOnly: boolean
  maxRows: number
  as?: string // a caller of the application; the owner without
}

/** PostgreSQL's report of an error. */
export interface Report {
  message: string
  detail: string
  hint: string
  context: string
  sqlstate: string
  position: number // character of the query from 1; 0: unknown
  statement: number
}

export class SQLError extends ApiError {
  readonly report: Report | null

  constructor(failure: ApiError, report: Report | null) {
    super(failure.status, {
      code: failure.code, detail: failure.message, fields: failure.fields, requestId: failure.requestId,
    }, failure)
    this.report = report
  }
}

const timeout = 30_000 // ms, the most that the API allows

/** Runs SQL; throws a SQLError if it fails, and the signal's reason if it is aborted. */
export async function runSQL(project: string, statement: Statement, signal?: AbortSignal): Promise<Answer> {
  const { query, parameters, readOnly, maxRows, as = '' } = statement
  const response = await send(new URL('/sql', location.origin).href, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', ...inProject(project) },
    body: JSON.stringify({
      query, read_only: readOnly, max_rows: maxRows, timeout_ms: timeout,
      ...(parameters.length > 0 && { parameters }),
      ...(as !== '' && { as }),
    }),
    ...(signal !== undefined && { signal }),
  })
  const text = await response.text()

  if (!response.ok) {
    const answer = parse(text)
    const report = (answer as { metadata?: { postgres?: Report } } | null)?.metadata?.postgres ?? null
    throw new SQLError(failureOf(response, answer), report)
  }

  return answerOf(parseExact(text))
}

function answerOf(envelope: Exact): Answer {
  const { results, ...rest } = (envelope as { content: Record<string, Exact> }).content
  return {
    ...(plain(rest) as Omit<Answer, 'results'>),
    results: (results as Record<string, Exact>[]).map((r) => {
      const { rows, ...other } = r
      return { ...(plain(other) as Omit<Result, 'rows'>), rows: rows as Exact[][] }
    }),
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}
