import { useMemo, useState } from 'react'
import { useQuery } from '@tanstack/react-query'
import { api, inProject, read } from '../../api/client'
import { change } from '../../components/change'
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
    <FormDialog title={`Create a trigger of ${table.name}`} open onClose={onClose} side action="Create trigger"
      onSubmit={create} disabled={events.length === 0}>
      <TextField label="Name" required autoFocus value={name} onChange={(e) => setName(e.target.value)} />
      <SelectField label="Function" required value={called} onChange={(e) => setCalled(e.target.value)}
        hint={functions.length === 0
          ? 'No function returns the type trigger yet: create one at Functions.'
          : 'Functions that return the type trigger.'}>
        <option value="">Choose…</option>
        {functions.map((f) => <option key={f}>{f}</option>)}
      </SelectField>
      <fieldset className={css.group}>
        <legend>Events</legend>
        <div className={css.checks}>
          {allEvents.map((event) => (
            <CheckField key={event} label={event} checked={events.includes(event)}
              disabled={event === 'truncate' && level === 'row'}
              onChange={(e) => setEvents(allEvents.filter((x) => (x === event ? e.target.checked : events.includes(x))))} />
          ))}
        </div>
      </fieldset>
      <div className={css.pair}>
        <SelectField label="Timing" value={timing} onChange={(e) => setTiming(e.target.value as typeof timing)}>
          <option value="before">before the change</option>
          <option value="after">after the change</option>
        </SelectField>
        <SelectField label="Once per" value={level} onChange={(e) => {
          setLevel(e.target.value as typeof level)
          if (e.target.value === 'row') setEvents(events.filter((x) => x !== 'truncate'))
        }}>
          <option value="row">row</option>
          <option value="statement">statement</option>
        </SelectField>
      </div>
      <TextField label="Only updates of columns" value={columns} disabled={!events.includes('update')}
        hint="Separated by commas. Empty: all columns." onChange={(e) => setColumns(e.target.value)} />
      <TextField label="Only when" value={when} placeholder="old.price is distinct from new.price"
        hint="A condition on old and new. Empty: always." onChange={(e) => setWhen(e.target.value)} />
    </FormDialog>
  )
}

function useTriggerFunctions(project: string): string[] {
  const { data } = useQuery({
    queryKey: ['functions', project, 'all'],
    queryFn: () => read(api.GET('/functions', { params: { header: inProject(project), query: { limit: 100 } } })),
  })

  return data?.content.filter((f) => f.returnType === 'trigger').map((f) => `${f.schema}.${f.name}`) ?? []
}
