import { texts } from '#texts/sql'
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
        {texts.allowWrites}
      </label>
      <Button look="quiet" onClick={() => onPanel('history')}>{texts.history}</Button>
      <Button look="quiet" onClick={() => onPanel('saved')}>{texts.savedQueries}</Button>
      <Button needs="runSQL" disabled={running || empty} onClick={onExplain}
        title={texts.runsTheStatementAndShows}>
        {texts.explain}
      </Button>
      {running
        ? <Button look="danger" onClick={onCancel}>{texts.cancel}</Button>
        : (
          <Button needs="runSQL" look="primary" disabled={empty} onClick={onRun} title={texts.ctrlEnter}>
            {selected ? texts.runSelection : texts.run}
          </Button>
        )}
    </>
  )
}
