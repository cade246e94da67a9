import { texts } from '#texts/sql'
import { IconButton } from '../../components/Button'
import { titleOf } from './statement'
import type { Tab } from './tabs'
import css from './SQL.module.css'

/** The texts that are open. */
export function TabStrip({ tabs, active, onChoose, onAdd, onClose }: {
  tabs: Tab[]
  active: string
  onChoose: (id: string) => void
  onAdd: () => void
  onClose: (id: string) => void
}) {
  return (
    <div className={css.tabs} role="group" aria-label={texts.openQueries}>
      {tabs.map((tab) => (
        <span key={tab.id} className={css.tab} data-active={tab.id === active ? '' : undefined}>
          <button type="button" aria-pressed={tab.id === active} onClick={() => onChoose(tab.id)}>
            {titleOf(tab.text)}
          </button>
          {tabs.length > 1 && (
            <IconButton label={texts.closeText(titleOf(tab.text))} onClick={() => onClose(tab.id)}>✕</IconButton>
          )}
        </span>
      ))}
      <IconButton label={texts.newQuery} onClick={onAdd}>+</IconButton>
    </div>
  )
}
