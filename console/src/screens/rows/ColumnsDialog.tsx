import { useState } from 'react'
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
    <Dialog title="Columns" open onClose={onClose} side>
      <div className={css.stack}>
        <TextField label="Search columns" type="search" value={search} onChange={(e) => setSearch(e.target.value)} />
        <div className={css.actions}>
          <Button onClick={() => onChange({ hidden: [] })}>Show all</Button>
          <Button onClick={() => onChange({ hidden: columns.filter((c) => !c.primary).map((c) => c.name) })}>Hide all but the key</Button>
          <Button look="quiet" onClick={() => onChange({ order: [], hidden: [], pinned: [], widths: {} })}>Reset</Button>
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
              <IconButton label={`${isPinned.has(c.name) ? 'Unpin' : 'Pin'} ${c.name}`} aria-pressed={isPinned.has(c.name)}
                onClick={() => onChange({ pinned: toggle(layout.pinned, c.name) })}>
                {isPinned.has(c.name) ? '◆' : '◇'}
              </IconButton>
              <IconButton label={`Move ${c.name} up`} onClick={() => onChange({ order: move(columns, layout, c.name, -1) })}>↑</IconButton>
              <IconButton label={`Move ${c.name} down`} onClick={() => onChange({ order: move(columns, layout, c.name, 1) })}>↓</IconButton>
            </li>
          ))}
        </ul>
      </div>
    </Dialog>
  )
}
