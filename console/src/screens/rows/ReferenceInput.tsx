import { useDeferredValue, useId, useState, type KeyboardEvent } from 'react'
import { useQuery } from '@tanstack/react-query'
import { texts } from '#texts/rows'
import { inputClass } from '../../components/Field'
import { isNull, textOf, type Row } from './json'
import { useRelation } from './relation'
import type { Reference } from './types'
import type { ControlSlot } from './ValueControl'
import { findReferenced } from './writes'
import css from './ValueControl.module.css'

/** A foreign key: its value, and a search in the table that it refers to. */
export function ReferenceInput({ project, reference, value, onChange, slot, placeholder }: {
  project: string
  reference: Reference
  value: string
  onChange: (text: string) => void
  slot: ControlSlot
  placeholder: string
}) {
  const id = useId()
  const [index, setIndex] = useState(-1)
  const [searches, setSearches] = useState(slot.autoFocus === true)
  const [typed, setTyped] = useState('')
  const text = useDeferredValue(typed)
  const { data: relation } = useRelation(project, reference.table)
  const found = useQuery({
    queryKey: ['rows', project, reference.table, 'search', reference.column, text],
    enabled: searches && relation !== undefined,
    queryFn: () => findReferenced(project, relation!, reference.column, text),
    placeholderData: (former) => former,
  })
  const rows = found.data ?? []

  function onKeyDown(e: KeyboardEvent) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[e.key]
    const row = rows[index]
    if (step !== undefined && rows.length > 0) {
      e.preventDefault()
      setSearches(true)
      setIndex((index + step + rows.length) % rows.length)
    } else if (e.key === 'Enter' && searches && row !== undefined) {
      e.preventDefault()
      choose(row)
    } else {
      slot.onKeyDown?.(e)
    }
  }

  function choose(row: Row) {
    onChange(textOf(row[reference.column] ?? 'null'))
    setIndex(-1)
    setSearches(false)
  }

  return (
    <div className={css.reference}>
      <input {...slot} role="combobox" aria-expanded={searches} aria-controls={`${id}-list`} autoComplete="off" spellCheck={false}
        aria-activedescendant={index >= 0 ? `${id}-${index}` : undefined} className={inputClass} value={value}
        placeholder={placeholder || texts.searchInTable(reference.table)} onFocus={() => setSearches(true)} onKeyDown={onKeyDown}
        onChange={(e) => {
          onChange(e.target.value)
          setTyped(e.target.value)
          setSearches(true)
          setIndex(-1)
        }} />
      {searches && (
        <div id={`${id}-list`} role="listbox" aria-label={texts.rowsInTable(reference.table)} className={css.options}>
          {rows.map((row, i) => (
            <div key={row[reference.column]} id={`${id}-${i}`} role="option" aria-selected={i === index} className={css.option}
              onMouseDown={(e) => e.preventDefault()} onClick={() => choose(row)}>
              <code>{textOf(row[reference.column] ?? '')}</code>
              <span>{summary(row, reference.column)}</span>
            </div>
          ))}
          {found.error !== null && <p className={css.note}>{found.error.message}</p>}
          {found.isSuccess && rows.length === 0 && <p className={css.note}>{texts.noRowInHasThis(reference.table)}</p>}
          {found.isPending && <p className={css.note}>{texts.searchingInTable(reference.table)}</p>}
        </div>
      )}
    </div>
  )
}

/** Returns the first values of a row besides its key. */
export function summary(row: Row, key: string): string {
  return Object.entries(row)
    .filter(([name, raw]) => name !== key && !isNull(raw))
    .slice(0, 3)
    .map(([, raw]) => textOf(raw).slice(0, 60))
    .join(' · ')
}
