import { useEffect, useRef, useState } from 'react'
import { follow, type Change, type Followed } from './stream'

export type Following =
  | { status: 'off' }
  | { status: 'connecting' }
  | { status: 'following' }
  | { status: 'lost'; why: string }

/** Follows changes of rows while the component is there; null follows nothing. */
export function useChanges(project: string, followed: Followed | null, on: {
  change: (change: Change) => void
  gap: () => void
}): Following {
  const [state, setState] = useState<Following>({ status: 'off' })
  const latest = useRef(on)
  latest.current = on
  const key = followed === null ? '' : JSON.stringify(followed)

  useEffect(() => {
    if (key === '') {
      setState({ status: 'off' })
      return
    }

    const abort = new AbortController()
    void follow(project, JSON.parse(key) as Followed, {
      onState: (status, why = '') => !abort.signal.aborted && setState(status === 'lost' ? { status, why } : { status }),
      onChange: (change) => !abort.signal.aborted && latest.current.change(change),
      onGap: () => !abort.signal.aborted && latest.current.gap(),
    }, abort.signal)

    return () => abort.abort()
  }, [project, key])

  return state
}
