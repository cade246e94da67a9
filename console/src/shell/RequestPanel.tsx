import { useSyncExternalStore } from 'react'
import { texts } from '#texts/shell'
import { curl, recorded, subscribe } from '../api/log'
import { Badge, Code } from '../components/Bits'
import { Dialog } from '../components/Dialog'
import { Empty } from '../components/States'
import css from './RequestPanel.module.css'

/** Shows the requests behind what the person did, as commands for a script. */
export function RequestPanel({ open, onClose }: { open: boolean; onClose: () => void }) {
  const requests = useSyncExternalStore(subscribe, recorded)

  return (
    <Dialog title={texts.requestsOfThisPage} open={open} onClose={onClose} side wide>
      {requests.length === 0 && <Empty title={texts.noRequestYet}>{texts.everyActionHereIsA}</Empty>}
      <ol className={css.list}>
        {requests.map((r) => (
          <li key={r.id}>
            <details>
              <summary>
                <Badge tone={r.status >= 400 ? 'danger' : 'neutral'}>{r.status}</Badge> <b>{r.method}</b>{' '}
                <code>{r.path}</code>
              </summary>
              <Code text={curl(r, location.origin)} label={texts.theRequestAsACurl} />
            </details>
          </li>
        ))}
      </ol>
    </Dialog>
  )
}
