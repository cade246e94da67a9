import { useId, useState, type KeyboardEvent } from 'react'
import { Popover } from '@base-ui/react/popover'
import { texts } from '#texts/rows'
import { Button } from '../../components/Button'
import { encode, type Draft } from './edit'
import type { Column } from './types'
import { ValueControl } from './ValueControl'
import css from './CellEditor.module.css'

/** Where the cursor goes after a cell is saved. */
export type Step = 'stay' | 'down' | 'next' | 'previous'

/** An editor above a cell. It stays open, with what was typed, while the value is not valid. */
export function CellEditor({ project, column, initial, failure, anchor, width, onSave, onCancel }: {
  project: string
  column: Column
  initial: Draft
  failure: string
  anchor: () => Element | null
  width: number
  onSave: (draft: Draft, step: Step) => void
  onCancel: () => void
}) {
  const id = useId()
  const [draft, setDraft] = useState(initial)
  const [error, setError] = useState(failure)
  const longText = column.kind === 'json' || column.kind === 'array'

  function save(next: Draft, step: Step) {
    const encoded = next.mode === 'default' ? { raw: '' } : encode(column, next)
    if ('error' in encoded) setError(encoded.error)
    else onSave(next, step)
  }

  function onKeyDown(e: KeyboardEvent) {
    if (e.key === 'Enter' && !e.shiftKey && (!longText || e.ctrlKey || e.metaKey)) {
      e.preventDefault()
      save(draft, 'down')
    } else if (e.key === 'Tab') {
      e.preventDefault()
      save(draft, e.shiftKey ? 'previous' : 'next')
    } else if (e.key === 'Escape') {
      e.preventDefault()
      e.stopPropagation()
      onCancel()
    }
  }

  const changed = draft.mode !== initial.mode || draft.text !== initial.text

  return (
    <Popover.Root open onOpenChange={(open, details) => {
      if (open || details.reason === 'focus-out') return // a dialog took the focus
      if (details.reason !== 'outside-press') onCancel()
      else if (changed) save(draft, 'stay')
      else if (failure === '') onCancel() // what was not saved stays in sight
    }}>
      <Popover.Portal>
        <Popover.Positioner className={css.positioner} anchor={anchor} side="bottom" align="start"
          sideOffset={({ anchor: cell }) => -cell.height} collisionPadding={8}>
          <Popover.Popup className={css.popup} style={{ width: Math.max(width, longText ? 380 : 260) }} aria-label={texts.editName(column.name)}
            initialFocus={() => document.getElementById(id)?.querySelector<HTMLElement>('input, select, textarea') ?? true}>
            <div id={id}>
              <ValueControl project={project} column={column} draft={draft} label={column.name} onKeyDown={onKeyDown}
                autoFocus invalid={error !== ''} describedBy={error !== '' ? `${id}-error` : undefined} onChange={(next) => {
                  setDraft(next)
                  setError('')
                }} />
            </div>
            {error !== '' && <p id={`${id}-error`} className={css.error} role="alert">{error}</p>}
            <footer className={css.foot}>
              {!column.notNull && <Button look="quiet" onClick={() => save({ mode: 'null', text: '' }, 'stay')}>{texts.setNull}</Button>}
              {column.defaultValue !== '' && (
                <Button look="quiet" title={column.defaultValue}
                  onClick={() => save({ mode: 'default', text: '' }, 'stay')}>{texts.useDefault}</Button>
              )}
              <span className={css.space} />
              <Button look="primary" title={longText ? texts.ctrlEnter : texts.enter} onClick={() => save(draft, 'stay')}>{texts.save}</Button>
            </footer>
            <p className={css.keys}>
              {texts.kbdSavesKbd2CancelsKbd3(<kbd>{longText ? 'Ctrl Enter' : 'Enter'}</kbd>, <kbd>Esc</kbd>, <kbd>Tab</kbd>)}
            </p>
          </Popover.Popup>
        </Popover.Positioner>
      </Popover.Portal>
    </Popover.Root>
  )
}
