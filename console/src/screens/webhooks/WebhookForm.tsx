import { useState } from 'react'
import { useQuery } from '@tanstack/react-query'
import { api, read, type Schemas } from '../../api/client'
import { IconButton, Button } from '../../components/Button'
import { FormDialog } from '../../components/Dialog'
import { CheckField, SelectField, TextArea, TextField } from '../../components/Field'
import { Stack } from '../../components/Page'
import { listTables } from '../../components/tableList'
import { queries } from '../../queries'
import { eventTypes, parseHeaders } from './events'
import css from './Webhooks.module.css'

type Webhook = Schemas['Webhook']
type Watched = Webhook['tables'][number]

const kinds = { '*': 'Insert, update and delete', INSERT: 'Insert', UPDATE: 'Update', DELETE: 'Delete', TRUNCATE: 'Truncate' }
type Kind = keyof typeof kinds

/** Creates a webhook, or changes one. */
export function WebhookForm({ project, former, onClose, onSaved }: {
  project: string
  former?: Webhook
  onClose: () => void
  onSaved: (webhook: Webhook, secret?: string) => void
}) {
  const [name, setName] = useState(former?.name ?? '')
  const [endpoint, setEndpoint] = useState(former?.endpoint ?? '')
  const [tables, setTables] = useState<Watched[]>(former?.tables ?? [])
  const [events, setEvents] = useState<string[]>(former?.events ?? [])
  const [headers, setHeaders] = useState('')
  const [ordered, setOrdered] = useState(former?.ordered ?? false)
  const [idempotency] = useState(() => crypto.randomUUID())
  const parsed = parseHeaders(headers)

  async function save() {
    if (typeof parsed === 'string') throw new Error(parsed)

    const body = {
      name, endpoint, events, ordered,
      tables: tables.map((t) => ({ ...t, event: t.event as Kind })),
      ...(headers.trim() !== '' && { headers: parsed }),
    }
    if (former === undefined) {
      const { content, metadata } = await read(api.POST('/projects/{projectUUID}/webhooks', {
        params: { path: { projectUUID: project } }, body, headers: { 'Idempotency-Key': idempotency },
      }))
      onSaved(content, metadata.secret)
    } else {
      const { content } = await read(api.PUT('/projects/{projectUUID}/webhooks/{webhookUUID}', {
        params: { path: { projectUUID: project, webhookUUID: former.uuid } }, body,
      }))
      onSaved(content)
    }
    await queries.invalidateQueries({ queryKey: ['webhooks', project] })
  }

  return (
    <FormDialog title={former === undefined ? 'New webhook' : 'Edit webhook'} open wide onClose={onClose} onSubmit={save}
      action={former === undefined ? 'Create webhook' : 'Save changes'} disabled={tables.length + events.length === 0}>
      <TextField label="Name" required maxLength={100} autoFocus value={name} onChange={(e) => setName(e.target.value)} />
      <TextField label="Endpoint" required type="url" maxLength={2000} value={endpoint} placeholder="https://example.com/hooks"
        hint="It gets a signed POST for each event, until it answers with a status from 200 to 299."
        onChange={(e) => setEndpoint(e.target.value)} />
      <WatchedTables project={project} tables={tables} onChange={setTables} />
      <fieldset className={css.events}>
        <legend>Other events</legend>
        {Object.entries(eventTypes).map(([type, text]) => (
          <CheckField key={type} label={type} hint={text} checked={events.includes(type)}
            onChange={(e) => setEvents(e.target.checked ? [...events, type] : events.filter((t) => t !== type))} />
        ))}
      </fieldset>
      <CheckField label="In order" checked={ordered} onChange={(e) => setOrdered(e.target.checked)}
        hint="An event waits until all before it are delivered or given up." />
      <TextArea label="Headers" rows={2} value={headers} spellCheck={false} placeholder="Authorization: Bearer …"
        error={typeof parsed === 'string' ? parsed : undefined}
        hint={former === undefined || former.headers.length === 0 ? 'One a line. Their values are not shown again.'
          : `Set: ${former.headers.join(', ')}. What you write replaces all of them; empty keeps them.`}
        onChange={(e) => setHeaders(e.target.value)} />
    </FormDialog>
  )
}

function WatchedTables({ project, tables, onChange }: { project: string; tables: Watched[]; onChange: (tables: Watched[]) => void }) {
  const { data } = useQuery({ queryKey: ['tables', project, 'all'], queryFn: () => listTables(project) })
  const patch = (index: number, next: Partial<Watched>) => onChange(tables.map((t, i) => (i === index ? { ...t, ...next } : t)))

  return (
    <fieldset className={css.tables}>
      <legend>Changes of rows</legend>
      <Stack>
        {tables.map((t, i) => (
          <div key={i} className={css.table}>
            <SelectField label="Table" value={`${t.schema}.${t.table}`} onChange={(e) => {
              const dot = e.target.value.indexOf('.')
              patch(i, { schema: e.target.value.slice(0, dot), table: e.target.value.slice(dot + 1) })
            }}>
              {[...new Set([`${t.schema}.${t.table}`, ...(data ?? []).map((d) => d.fullName)])].map((n) => <option key={n}>{n}</option>)}
            </SelectField>
            <SelectField label="Change" value={t.event} onChange={(e) => patch(i, { event: e.target.value })}>
              {Object.entries(kinds).map(([value, text]) => <option key={value} value={value}>{text}</option>)}
            </SelectField>
            <TextField label="Condition" value={t.filter} placeholder="status=eq.paid" spellCheck={false}
              onChange={(e) => patch(i, { filter: e.target.value })} />
            <IconButton label={`Remove table ${t.table}`} onClick={() => onChange(tables.filter((_, j) => j !== i))}>✕</IconButton>
          </div>
        ))}
        <div>
          <Button disabled={data === undefined || data.length === 0} onClick={() => {
            const first = data?.find((d) => !tables.some((t) => d.schema === t.schema && d.name === t.table)) ?? data?.[0]
            if (first) onChange([...tables, { schema: first.schema, table: first.name, event: '*', filter: '' }])
          }}>
            Add a table
          </Button>
        </div>
      </Stack>
    </fieldset>
  )
}
