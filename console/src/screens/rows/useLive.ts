/** Rows that follow the changes of their table. */

import { useEffect, useRef } from 'react'
import { useChanges, type Following } from '../../components/useChanges'
import { queries } from '../../queries'
import { useURLState } from '../../url'
import type { Relation } from './relation'

const restTime = 500 // ms; many changes at once load the rows once

export interface Live {
  isOn: boolean
  state: Following
  toggle: () => void
}

/** Loads the shown rows again when the table changes, while the switch of the URL is on. */
export function useLive(project: string, relation: Relation, as: string): Live {
  const [live, setLive] = useURLState('live', '')
  const isOn = live !== '' && !relation.isView
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined)

  useEffect(() => () => clearTimeout(timer.current), [])

  function refresh() {
    timer.current ??= setTimeout(() => {
      timer.current = undefined
      void queries.invalidateQueries({ queryKey: ['rows', project] })
    }, restTime)
  }

  const state = useChanges(project, isOn ? { schema: relation.schema, table: relation.name, as } : null, { change: refresh, gap: refresh })

  return { isOn, state, toggle: () => setLive(isOn ? '' : '1') }
}
