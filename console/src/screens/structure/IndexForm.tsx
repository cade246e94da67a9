import { useId, useMemo, useState } from 'react'
import { texts } from '#texts/structure'
import { api } from '../../api/client'
import { Button, IconButton } from '../../components/Button'
import { change } from '../../components/change'
import { FormDialog } from '../../components/Dialog'
import { CheckField, inputClass, SelectField, TextField } from '../../components/Field'
import { identifier } from '../../components/sqlText'
import { createIndex } from './ddl'
import { SQLPreview } from './SQLPreview'
import { onTable, reload, useColumns, type TableRef } from './table'
import css from './Structure.module.css'

type Method = 'btree' | 'hash' | 'gin' | 'gist' | 'brin'
const methods: Record<Method, string> = {
  btree: texts.bTreeEqualityRangesOrder, hash: texts.hashEqualityOnly, gin: texts.ginJsonbArraysTextSearch,
  gist: texts.giSTGeometryRanges, brin: texts.brinVeryLargeTablesIn,
}

interface Key {
  text: string // a column or an expression
  descending: boolean
  operatorClass: string
}

const noKey: Key = { text: '', descending: false, operatorClass: '' }

export function IndexForm({ table, onClose }: { table: TableRef; onClose: () => void }) {
  const [name, setName] = useState('')
  const [keys, setKeys] = useState([noKey])
  const [include, setInclude] = useState('')
  const [method, setMethod] = useState<Method>('btree')
  const [unique, setUnique] = useState(false)
  const [distinct, setDistinct] = useState(true)
  const [where, setWhere] = useState('')
  const columns = useColumns(table).data?.content.map((c) => c.name) ?? []
  const included = include.split(',').map((c) => c.trim()).filter((c) => c !== '')
  const idempotency = useMemo(() => crypto.randomUUID(), [])

  async function create() {
    await change(api.POST('/tables/{tableUUID}/indexes', {
      params: onTable(table),
      headers: { 'Idempotency-Key': idempotency },
      body: {
        method, unique, keys: keys.map((k) => keyOf(k, columns)),
        ...(name !== '' && { name }), ...(where !== '' && { where }),
        ...(included.length > 0 && { include: included }),
        ...(unique && !distinct && { nulls_not_distinct: true }),
      },
    }))
    await reload(table.project)
  }

  return (
    <FormDialog title={texts.createAnIndexOfName(table.name)} open onClose={onClose} side action={texts.createIndex}
      onSubmit={create}>
      <KeyList keys={keys} columns={columns} onChange={setKeys} />
      <SelectField label={texts.method} value={method} onChange={(e) => setMethod(e.target.value as Method)}>
        {Object.entries(methods).map(([m, text]) => <option key={m} value={m}>{text}</option>)}
      </SelectField>
      <div className={css.checks}>
        <CheckField label={texts.unique} checked={unique} onChange={(e) => setUnique(e.target.checked)} />
        {unique && (
          <CheckField label={texts.atMostOneNull} checked={!distinct} onChange={(e) => setDistinct(!e.target.checked)} />
        )}
      </div>
      <TextField label={texts.onlyRowsWhere} value={where} onChange={(e) => setWhere(e.target.value)}
        hint={texts.aConditionForAPartial} />
      <TextField label={texts.includeColumns} value={include} onChange={(e) => setInclude(e.target.value)}
        hint={texts.separatedByCommasTheIndex} />
      <TextField label={texts.name} value={name} onChange={(e) => setName(e.target.value)}
        hint={texts.emptyMadeFromTheNames} />
      <SQLPreview change={createIndex(table.name, {
        name, include: included, method, unique, where, keys: keys.map((k) => sqlOf(k, columns)),
      })} />
    </FormDialog>
  )
}

function KeyList({ keys, columns, onChange }: { keys: Key[]; columns: string[]; onChange: (keys: Key[]) => void }) {
  const list = useId()
  const set = (at: number, part: Partial<Key>) => onChange(keys.map((k, i) => (i === at ? { ...k, ...part } : k)))

  return (
    <fieldset className={css.group}>
      <legend>{texts.columnsOrExpressions}</legend>
      <datalist id={list}>{columns.map((c) => <option key={c} value={c} />)}</datalist>
      {keys.map((key, i) => (
        <div key={i} className={css.keys}>
          <input className={inputClass} aria-label={texts.columnOrExpressionI(i + 1)} list={list} required
            value={key.text} placeholder={texts.titleOrLowerTitle} onChange={(e) => set(i, { text: e.target.value })} />
          <select className={inputClass} aria-label={texts.orderOfI(i + 1)} value={key.descending ? 'desc' : 'asc'}
            onChange={(e) => set(i, { descending: e.target.value === 'desc' })}>
            <option value="asc">{texts.ascending}</option>
            <option value="desc">{texts.descending}</option>
          </select>
          <input className={inputClass} aria-label={texts.operatorClassOfI(i + 1)} placeholder={texts.operatorClass}
            value={key.operatorClass} onChange={(e) => set(i, { operatorClass: e.target.value })} />
          <IconButton label={texts.removeI(i + 1)} disabled={keys.length === 1}
            onClick={() => onChange(keys.filter((_, other) => other !== i))}>
            ✕
          </IconButton>
        </div>
      ))}
      <div>
        <Button onClick={() => onChange([...keys, noKey])}>{texts.addKey}</Button>
      </div>
    </fieldset>
  )
}

const keyOf = (key: Key, columns: string[]) => ({
  ...(columns.includes(key.text) ? { column: key.text } : { expression: key.text }),
  ...(key.descending && { descending: true }),
  ...(key.operatorClass !== '' && { operator_class: key.operatorClass }),
})

const isCall = (text: string) => /^\w+\([^()]*\)$/.test(text)

function sqlOf(key: Key, columns: string[]): string {
  const text = columns.includes(key.text) ? identifier(key.text) : key.text === '' ? '…' : isCall(key.text) ? key.text : `(${key.text})`
  return `${text}${key.operatorClass === '' ? '' : ` ${key.operatorClass}`}${key.descending ? ' desc' : ''}`
}
