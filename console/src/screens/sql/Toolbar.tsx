import { Button } from '../../components/Button'
import { SeeAs } from '../../components/SeeAs'
import css from './SQL.module.css'

interface Props {
  project: string
  running: boolean
  readOnly: boolean
  selected: boolean // a part of the text only
  empty: boolean
  as: string
  onAs: (as: string) => void
  onReadOnly: (readOnly: boolean) => void
  onRun: () => void
  onExplain: () => void
  onCancel: () => void
  onPanel: (panel: string) => void
}

export function Toolbar({
  project, running, readOnly, selected, empty, as, onAs, onReadOnly, onRun, onExplain, onCancel, onPanel,
}: Props) {
  return (
    <>
      <SeeAs project={project} value={as} onChange={onAs} runs />
      <label className={`${css.mode} ${readOnly ? '' : css.writes}`}>
        <input type="checkbox" role="switch" checked={!readOnly} onChange={(e) => onReadOnly(!e.target.checked)} />
        Allow writes
      </label>
      <Button look="quiet" onClick={() => onPanel('history')}>History</Button>
      <Button look="quiet" onClick={() => onPanel('saved')}>Saved queries</Button>
      <Button needs="runSQL" disabled={running || empty} onClick={onExplain}
        title="Runs the statement and shows its plan with times">
        Explain
      </Button>
      {running
        ? <Button look="danger" onClick={onCancel}>Cancel</Button>
        : (
          <Button needs="runSQL" look="primary" disabled={empty} onClick={onRun} title="Ctrl+Enter">
            {selected ? 'Run selection' : 'Run'}
          </Button>
        )}
    </>
  )
}
