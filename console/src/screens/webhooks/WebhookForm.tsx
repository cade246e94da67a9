import { useState } from 'react'
import { useQuery } from '@tanstack/react-query'
import { texts } from '#texts/webhooks'
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

const kinds = { '*': texts.insertUpdateAndDelete, INSERT: texts.insert, UPDATE: texts.update, DELETE: texts.delete, TRUNCATE: texts.truncate }
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
    <FormDialog title={former === undefined ? texts.newWebhook : texts.editWebhook} open wide onClose={onClose} onSubmit={save}
      action={former === undefined ? texts.createWebhook : texts.saveChanges} disabled={tables.length + events.length === 0}>
      <TextField label={texts.name} required maxLength={100} autoFocus value={name} onChange={(e) => setName(e.target.value)} />
      <TextField label={texts.endpoint} required type="url" maxLength={2000} value={endpoint} placeholder={texts.httpsExampleComHooks}
        hint={texts.itGetsASignedPOST}
        onChange={(e) => setEndpoint(e.target.value)} />
      <WatchedTables project={project} tables={tables} onChange={setTables} />
      <fieldset className={css.events}>
        <legend>{texts.otherEvents}</legend>
        {Object.entries(eventTypes).map(([type, text]) => (
          <CheckField key={type} label={type} hint={text} checked={events.includes(type)}
            onChange={(e) => setEvents(e.target.checked ? [...events, type] : events.filter((t) => t !== type))} />
        ))}
      </fieldset>
      <CheckField label={texts.inOrder} checked={ordered} onChange={(e) => setOrdered(e.target.checked)}
        hint={texts.anEventWaitsUntilAll} />
      <TextArea label={texts.headers} rows={2} value={headers} spellCheck={false} placeholder={texts.authorizationBearer}
        error={typeof parsed === 'string' ? parsed : undefined}
        hint={former === undefined || former.headers.length === 0 ? texts.oneALineTheirValues
          : texts.setWhatYouWriteReplaces(former.headers.join(', '))}
        onChange={(e) => setHeaders(e.target.value)} />
    </FormDialog>
  )
}

function WatchedTables({ project, tables, onChange }: { project: string; tables: Watched[]; onChange: (tables: Watched[]) => void }) {
  const { data } = useQuery({ queryKey: ['tables', project, 'all'], queryFn: () => listTables(project) })
  const patch = (index: number, next: Partial<Watched>) => onChange(tables.map((t, i) => (i === index ? { ...t, ...next } : t)))

  return (
    <fieldset className={css.tables}>
      <legend>{texts.changesOfRows}</legend>
      <Stack>
        {tables.map((t, i) => (
          <div key={i} className={css.table}>
            <SelectField label={texts.table} value={`${t.schema}.${t.table}`} onChange={(e) => {
              const dot = e.target.value.indexOf('.')
              patch(i, { schema: e.target.value.slice(0, dot), table: e.target.value.slice(dot + 1) })
            }}>
              {[...new Set([`${t.schema}.${t.table}`, ...(data ?? []).map((d) => d.fullName)])].map((n) => <option key={n}>{n}</option>)}
            </SelectField>
            <SelectField label={texts.change} value={t.event} onChange={(e) => patch(i, { event: e.target.value })}>
              {Object.entries(kinds).map(([value, text]) => <option key={value} value={value}>{text}</option>)}
            </SelectField>
            <TextField label={texts.condition} value={t.filter} placeholder={texts.statusEqPaid} spellCheck={false}
              onChange={(e) => patch(i, { filter: e.target.value })} />
            <IconButton label={texts.removeTable(t.table)} onClick={() => onChange(tables.filter((_, j) => j !== i))}>✕</IconButton>
          </div>
        ))}
        <div>
          <Button disabled={data === undefined || data.length === 0} onClick={() => {
            const first = data?.find((d) => !tables.some((t) => d.schema === t.schema && d.name === t.table)) ?? data?.[0]
            if (first) onChange([...tables, { schema: first.schema, table: first.name, event: '*', filter: '' }])
          }}>
            {texts.addATable}
          </Button>
        </div>
      </Stack>
    </fieldset>
  )
}
