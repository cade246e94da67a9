import { useRef, useState } from 'react'
import type { Mark } from '../../components/editorLook'
import { runSQL, SQLError, type Answer } from '../../components/runSQL'
import { queries } from '../../queries'
import { rangeAt } from './statement'

export type Outcome =
  | { status: 'none' }
  | { status: 'running'; since: number }
  | { status: 'cancelled' }
  | { status: 'done'; answer: Answer; readOnly: boolean; as: string }
  | { status: 'failed'; error: unknown; mark: Mark | null; readOnly: boolean }

export interface Run {
  text: string
  offset: number // of the text in the editor
  whole: string // the editor's text
  parameters: (string | null)[]
  readOnly: boolean
  as: string // '': the owner
  explain: boolean
}

const none: Outcome = { status: 'none' }
const maxRows = 10_000
const explainPrefix = 'explain (analyze, buffers, format json) '

/** Runs statements; each tab has its own outcome. */
export function useRuns(project: string, tab: string) {
  const [outcomes, setOutcomes] = useState<Record<string, Outcome>>({})
  const controllers = useRef(new Map<string, AbortController>())

  async function run({ text, offset, whole, parameters, readOnly, as, explain }: Run) {
    if (text.trim() === '') return

    const set = (outcome: Outcome) => setOutcomes((former) => ({ ...former, [tab]: outcome }))
    const controller = new AbortController()
    controllers.current.get(tab)?.abort()
    controllers.current.set(tab, controller)
    set({ status: 'running', since: Date.now() })

    const prefix = explain ? explainPrefix : ''
    try {
      const statement = { query: prefix + text, parameters, readOnly, maxRows, as }
      const answer = await runSQL(project, statement, controller.signal)
      set({ status: 'done', answer, readOnly, as })
    } catch (error) {
      if (controller.signal.aborted) {
        if (controllers.current.get(tab) === controller) set({ status: 'cancelled' })
        return
      }
      set({ status: 'failed', error, readOnly, mark: markOf(error, whole, text, offset, prefix.length) })
    }

    void queries.invalidateQueries({ queryKey: ['sql', project] })
    if (!readOnly) void queries.invalidateQueries() // anything may have changed
  }

  return {
    outcome: outcomes[tab] ?? none,
    run,
    cancel: () => controllers.current.get(tab)?.abort(),
  }
}

function markOf(error: unknown, whole: string, text: string, offset: number, prefix: number): Mark | null {
  const position = error instanceof SQLError ? (error.report?.position ?? 0) - prefix : 0
  if (position <= 0 || whole.slice(offset, offset + text.length) !== text) return null

  const { from, to } = rangeAt(text, position)
  return { from: from + offset, to: to + offset }
}
