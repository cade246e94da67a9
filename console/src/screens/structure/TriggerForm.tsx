import { useMemo, useState } from 'react'
import { texts } from '#texts/structure'
import { api } from '../../api/client'
import { change } from '../../components/change'
import { useFunctions } from '../../components/choices'
import { FormDialog } from '../../components/Dialog'
import { CheckField, SelectField, TextField } from '../../components/Field'
import { onTable, reload, type TableRef } from './table'
import css from './Structure.module.css'

const allEvents = ['insert', 'update', 'delete', 'truncate'] as const
type Event = (typeof allEvents)[number]

export function TriggerForm({ table, onClose }: { table: TableRef; onClose: () => void }) {
  const [name, setName] = useState('')
  const [timing, setTiming] = useState<'before' | 'after'>('before')
  const [level, setLevel] = useState<'row' | 'statement'>('row')
  const [events, setEvents] = useState<Event[]>(['insert'])
  const [columns, setColumns] = useState('')
  const [when, setWhen] = useState('')
  const [called, setCalled] = useState('')
  const key = useMemo(() => crypto.randomUUID(), [])
  const functions = useTriggerFunctions(table.project)
  const named = columns.split(',').map((c) => c.trim()).filter((c) => c !== '')

  async function create() {
    await change(api.POST('/tables/{tableUUID}/triggers', {
      params: onTable(table),
      headers: { 'Idempotency-Key': key },
      body: {
        name, timing, level, events, function: called,
        ...(named.length > 0 && { columns: named }), ...(when !== '' && { when }),
      },
    }))
    await reload(table.project)
  }

  return (
    <FormDialog title={texts.createATriggerOfName(table.name)} open onClose={onClose} side action={texts.createTrigger}
      onSubmit={create} disabled={events.length === 0}>
      <TextField label={texts.name} required autoFocus value={name} onChange={(e) => setName(e.target.value)} />
      <SelectField label={texts.function} required value={called} onChange={(e) => setCalled(e.target.value)}
        hint={functions.length === 0
          ? texts.noFunctionReturnsTheType
          : texts.functionsThatReturnTheType}>
        <option value="">{texts.choose}</option>
        {functions.map((f) => <option key={f}>{f}</option>)}
      </SelectField>
      <fieldset className={css.group}>
        <legend>{texts.events}</legend>
        <div className={css.checks}>
          {allEvents.map((event) => (
            <CheckField key={event} label={event} checked={events.includes(event)}
              disabled={event === 'truncate' && level === 'row'}
              onChange={(e) => setEvents(allEvents.filter((x) => (x === event ? e.target.checked : events.includes(x))))} />
          ))}
        </div>
      </fieldset>
      <div className={css.pair}>
        <SelectField label={texts.timing} value={timing} onChange={(e) => setTiming(e.target.value as typeof timing)}>
          <option value="before">{texts.beforeTheChange}</option>
          <option value="after">{texts.afterTheChange}</option>
        </SelectField>
        <SelectField label={texts.oncePer} value={level} onChange={(e) => {
          setLevel(e.target.value as typeof level)
          if (e.target.value === 'row') setEvents(events.filter((x) => x !== 'truncate'))
        }}>
          <option value="row">{texts.row}</option>
          <option value="statement">{texts.statement}</option>
        </SelectField>
      </div>
      <TextField label={texts.onlyUpdatesOfColumns} value={columns} disabled={!events.includes('update')}
        hint={texts.separatedByCommasEmptyAll} onChange={(e) => setColumns(e.target.value)} />
      <TextField label={texts.onlyWhen} value={when} placeholder={texts.oldPriceIsDistinctFrom}
        hint={texts.aConditionOnOldAnd} onChange={(e) => setWhen(e.target.value)} />
    </FormDialog>
  )
}

function useTriggerFunctions(project: string): string[] {
  const { data } = useFunctions(project)

  return data?.filter((f) => f.returnType === 'trigger').map((f) => `${f.schema}.${f.name}`) ?? []
}
