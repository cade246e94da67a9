import { useState, type FormEvent } from 'react'
import { texts } from '#texts/rows'
import { Button, IconButton } from '../../components/Button'
import { inputClass } from '../../components/Field'
import { needsValue, operators, operatorsOf, readFilters, writeFilters, type Filter, type Operator } from './filters'
import type { Column } from './types'
import css from './FilterBar.module.css'

/** Conditions that rows must meet; applied as a whole, kept in the URL. */
export function FilterBar({ columns, value, onApply, onClose }: {
  columns: Column[]
  value: string
  onApply: (value: string) => void
  onClose: () => void
}) {
  const [filters, setFilters] = useState<Filter[]>(() => {
    const given = readFilters(value)
    return given.length > 0 ? given : [blank(columns[0])]
  })

  function submit(e: FormEvent) {
    e.preventDefault()
    onApply(writeFilters(filters))
  }

  const change = (at: number, next: Filter) => setFilters(filters.map((f, i) => (i === at ? next : f)))

  return (
    <form className={css.bar} onSubmit={submit} aria-label={texts.filters}>
      {filters.map((filter, i) => (
        <Condition key={i} number={i + 1} columns={columns} filter={filter} onChange={(next) => change(i, next)}
          onRemove={() => {
            const rest = filters.filter((_, j) => j !== i)
            setFilters(rest)
            if (rest.length === 0) {
              onApply('')
              onClose()
            }
          }} />
      ))}
      <div className={css.actions}>
        <Button onClick={() => setFilters([...filters, blank(columns[0])])}>{texts.addCondition}</Button>
        <Button type="submit" look="primary">{texts.applyFilters}</Button>
        <Button look="quiet" onClick={() => {
          onApply('')
          onClose()
        }}>{texts.clearFilters}</Button>
      </div>
    </form>
  )
}

export const blank = (column: Column | undefined): Filter =>
  ({ column: column?.name ?? '', operator: operatorsOf(column)[0] ?? 'eq', value: '' })

function Condition({ number, columns, filter, onChange, onRemove }: {
  number: number
  columns: Column[]
  filter: Filter
  onChange: (filter: Filter) => void
  onRemove: () => void
}) {
  const column = columns.find((c) => c.name === filter.column)
  const choices = operatorsOf(column)
  const values = column?.kind === 'boolean' ? ['true', 'false'] : column?.values ?? []

  return (
    <div className={css.condition}>
      <select className={inputClass} aria-label={texts.columnOfConditionNumber(number)} value={filter.column} onChange={(e) => {
        const next = columns.find((c) => c.name === e.target.value)
        const allowed = operatorsOf(next)
        onChange({ ...filter, column: e.target.value, operator: allowed.includes(filter.operator) ? filter.operator : allowed[0]! })
      }}>
        {columns.map((c) => <option key={c.name}>{c.name}</option>)}
      </select>
      <select className={inputClass} aria-label={texts.operatorOfConditionNumber(number)} value={filter.operator}
        onChange={(e) => onChange({ ...filter, operator: e.target.value as Operator })}>
        {[...new Set([...choices, filter.operator])].map((o) => <option key={o} value={o}>{operators[o]}</option>)}
      </select>
      {needsValue(filter.operator) && (values.length > 0 && filter.operator !== 'in' ? (
        <select className={inputClass} aria-label={texts.valueOfConditionNumber(number)} value={filter.value}
          onChange={(e) => onChange({ ...filter, value: e.target.value })}>
          {!values.includes(filter.value) && <option value={filter.value}>{filter.value}</option>}
          {values.map((v) => <option key={v}>{v}</option>)}
        </select>
      ) : (
        <input className={inputClass} aria-label={texts.valueOfConditionNumber(number)} value={filter.value} autoFocus={number === 1}
          placeholder={placeholderOf(filter.operator, column)} onChange={(e) => onChange({ ...filter, value: e.target.value })} />
      ))}
      <IconButton label={texts.removeConditionNumber(number)} onClick={onRemove}>✕</IconButton>
    </div>
  )
}

function placeholderOf(operator: Operator, column: Column | undefined): string {
  if (operator === 'in') return texts.oneTwoThree
  if (operator === 'like') return 'Book*'
  if (operator === 'cs') return column?.kind === 'json' ? '{"n": 1}' : '{a,b}'
  return column?.kind === 'timestamp' ? '2026-11-27 09:00+01' : texts.value
}
