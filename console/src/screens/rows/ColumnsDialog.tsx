import { useState } from 'react'
import { texts } from '#texts/rows'
import { Button, IconButton } from '../../components/Button'
import { Dialog } from '../../components/Dialog'
import { TextField } from '../../components/Field'
import { arrange, move, toggle, type Layout } from './layout'
import type { Column } from './types'
import css from './ColumnsDialog.module.css'

/** Shows, hides, pins and orders the columns of the grid. */
export function ColumnsDialog({ columns, layout, onChange, onClose }: {
  columns: Column[]
  layout: Layout
  onChange: (change: Partial<Layout>) => void
  onClose: () => void
}) {
  const [search, setSearch] = useState('')
  const { pinned, free } = arrange(columns, { ...layout, hidden: [] }, false)
  const found = [...pinned, ...free].filter((c) => c.name.toLowerCase().includes(search.toLowerCase()))
  const isPinned = new Set(pinned.map((c) => c.name))

  return (
    <Dialog title={texts.columns} open onClose={onClose} side>
      <div className={css.stack}>
        <TextField label={texts.searchColumns} type="search" value={search} onChange={(e) => setSearch(e.target.value)} />
        <div className={css.actions}>
          <Button onClick={() => onChange({ hidden: [] })}>{texts.showAll}</Button>
          <Button onClick={() => onChange({ hidden: columns.filter((c) => !c.primary).map((c) => c.name) })}>{texts.hideAllButTheKey}</Button>
          <Button look="quiet" onClick={() => onChange({ order: [], hidden: [], pinned: [], widths: {} })}>{texts.reset}</Button>
        </div>
        <ul className={css.list}>
          {found.map((c) => (
            <li key={c.name} className={css.item}>
              <label className={css.name}>
                <input type="checkbox" checked={!layout.hidden.includes(c.name)}
                  onChange={() => onChange({ hidden: toggle(layout.hidden, c.name) })} />
                <span className={css.text}>{c.name}</span>
                <span className={css.type}>{c.type}</span>
              </label>
              <IconButton label={`${isPinned.has(c.name) ? texts.unpin : texts.pin} ${c.name}`} aria-pressed={isPinned.has(c.name)}
                onClick={() => onChange({ pinned: toggle(layout.pinned, c.name) })}>
                {isPinned.has(c.name) ? '◆' : '◇'}
              </IconButton>
              <IconButton label={texts.moveNameUp(c.name)} onClick={() => onChange({ order: move(columns, layout, c.name, -1) })}>↑</IconButton>
              <IconButton label={texts.moveNameDown(c.name)} onClick={() => onChange({ order: move(columns, layout, c.name, 1) })}>↓</IconButton>
            </li>
          ))}
        </ul>
      </div>
    </Dialog>
  )
}
