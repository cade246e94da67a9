import { Button } from '../../components/Button'
import css from './SQL.module.css'

interface Props {
  running: boolean
  readOnly: boolean
  selected: boolean // a part of the text only
  empty: boolean
  onReadOnly: (readOnly: boolean) => void
  onRun: () => void
  onExplain: () => void
  onCancel: () => void
  onPanel: (panel: string) => void
}

export function Toolbar({ running, readOnly, selected, empty, onReadOnly, onRun, onExplain, onCancel, onPanel }: Props) {
  return (
    <>
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
