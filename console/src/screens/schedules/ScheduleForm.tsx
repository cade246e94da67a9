import { useState } from 'react'
import { api, read, type Schemas } from '../../api/client'
import { FormDialog } from '../../components/Dialog'
import { CheckField, SelectField, TextArea, TextField } from '../../components/Field'
import { queries } from '../../queries'
import { examples, inWords } from './words'

type Schedule = Schemas['Schedule']

/** The name or number by which the API knows a schedule. */
export const keyOf = (s: Schedule) => s.name ?? String(s.id)

/** Creates a schedule, or changes one. */
export function ScheduleForm({ project, former, onClose, onSaved }: {
  project: string
  former?: Schedule
  onClose: () => void
  onSaved: (schedule: Schedule) => void
}) {
  const [name, setName] = useState(former?.name ?? '')
  const [cron, setCron] = useState(former?.cron ?? '0 3 * * *')
  const [timezone, setTimezone] = useState(former?.timezone ?? Intl.DateTimeFormat().resolvedOptions().timeZone)
  const [kind, setKind] = useState<'sql' | 'endpoint'>(former?.endpoint ? 'endpoint' : 'sql')
  const [command, setCommand] = useState(former?.command ?? '')
  const [endpoint, setEndpoint] = useState(former?.endpoint ?? '')
  const [overlap, setOverlap] = useState<'skip' | 'queue'>(former?.overlap ?? 'skip')
  const [timeout, setTimeout] = useState(String(former?.timeoutSeconds ?? 600))
  const [active, setActive] = useState(former?.active ?? true)
  const [idempotency] = useState(() => crypto.randomUUID())
  const spoken = inWords(cron)

  async function save() {
    const body = {
      cron, timezone, overlap, active,
      timeout_seconds: Number(timeout),
      ...(kind === 'sql' ? { command } : { endpoint }),
    }
    const { content } = former === undefined
      ? await read(api.POST('/projects/{projectUUID}/schedules', {
        params: { path: { projectUUID: project } }, body: { name, ...body }, headers: { 'Idempotency-Key': idempotency },
      }))
      : await read(api.PUT('/projects/{projectUUID}/schedules/{scheduleName}', {
        params: { path: { projectUUID: project, scheduleName: keyOf(former) } },
        body: { ...body, ...(name !== '' && name !== former.name && { name }) },
      }))
    await queries.invalidateQueries({ queryKey: ['schedules', project] })
    onSaved(content)
  }

  return (
    <FormDialog title={former === undefined ? 'New schedule' : 'Edit schedule'} open wide onClose={onClose} onSubmit={save}
      action={former === undefined ? 'Create schedule' : 'Save changes'}>
      <TextField label="Name" required={former?.name !== null} maxLength={255} autoFocus value={name} placeholder="nightly"
        onChange={(e) => setName(e.target.value)} />
      <TextField label="When" required maxLength={255} value={cron} list="cron-examples" autoComplete="off" spellCheck={false}
        hint={spoken === cron ? 'Minute, hour, day of the month, month, day of the week; or a word such as @daily; or 30 seconds.' : `In words: ${spoken}.`}
        onChange={(e) => setCron(e.target.value)} />
      <datalist id="cron-examples">
        {Object.entries(examples).map(([value, text]) => <option key={value} value={value}>{text}</option>)}
      </datalist>
      <TextField label="Time zone" required maxLength={100} value={timezone} list="time-zones" autoComplete="off"
        onChange={(e) => setTimezone(e.target.value)} />
      <datalist id="time-zones">
        {Intl.supportedValuesOf('timeZone').map((zone) => <option key={zone}>{zone}</option>)}
      </datalist>
      <SelectField label="What" value={kind} onChange={(e) => setKind(e.target.value === 'endpoint' ? 'endpoint' : 'sql')}>
        <option value="sql">Run SQL as the project’s owner</option>
        <option value="endpoint">Call an endpoint of yours</option>
      </SelectField>
      {kind === 'sql' ? (
        <TextArea label="SQL" required rows={5} maxLength={65_536} spellCheck={false} value={command}
          placeholder="delete from carts where updated_at < now() - interval '30 days'" onChange={(e) => setCommand(e.target.value)} />
      ) : (
        <TextField label="Endpoint" type="url" required maxLength={500} value={endpoint} placeholder="https://example.com/nightly"
          hint="It gets a POST that is signed by Standard Webhooks, and has 10 seconds." onChange={(e) => setEndpoint(e.target.value)} />
      )}
      <SelectField label="If the run before is still in progress" value={overlap}
        onChange={(e) => setOverlap(e.target.value === 'queue' ? 'queue' : 'skip')}>
        <option value="skip">Skip this one</option>
        <option value="queue">Run once afterwards</option>
      </SelectField>
      <TextField label="Time limit in seconds" type="number" min={1} max={600} step={1} required value={timeout}
        onChange={(e) => setTimeout(e.target.value)} />
      <CheckField label="Active" checked={active} hint="Otherwise it runs on request only." onChange={(e) => setActive(e.target.checked)} />
    </FormDialog>
  )
}
