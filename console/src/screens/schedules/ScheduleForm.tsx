import { useState } from 'react'
import { texts } from '#texts/schedules'
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
    <FormDialog title={former === undefined ? texts.newSchedule : texts.editSchedule} open wide onClose={onClose} onSubmit={save}
      action={former === undefined ? texts.createSchedule : texts.saveChanges}>
      <TextField label={texts.name} required={former?.name !== null} maxLength={255} autoFocus value={name} placeholder={texts.nightly}
        onChange={(e) => setName(e.target.value)} />
      <TextField label={texts.when} required maxLength={255} value={cron} list="cron-examples" autoComplete="off" spellCheck={false}
        hint={spoken === cron ? texts.minuteHourDayOfThe : texts.inWordsSpoken(spoken)}
        onChange={(e) => setCron(e.target.value)} />
      <datalist id="cron-examples">
        {Object.entries(examples).map(([value, text]) => <option key={value} value={value}>{text}</option>)}
      </datalist>
      <TextField label={texts.timeZone} required maxLength={100} value={timezone} list="time-zones" autoComplete="off"
        onChange={(e) => setTimezone(e.target.value)} />
      <datalist id="time-zones">
        {Intl.supportedValuesOf('timeZone').map((zone) => <option key={zone}>{zone}</option>)}
      </datalist>
      <SelectField label={texts.what} value={kind} onChange={(e) => setKind(e.target.value === 'endpoint' ? 'endpoint' : 'sql')}>
        <option value="sql">{texts.runSQLAsTheProjects}</option>
        <option value="endpoint">{texts.callAnEndpointOfYours}</option>
      </SelectField>
      {kind === 'sql' ? (
        <TextArea label={texts.sql} required rows={5} maxLength={65_536} spellCheck={false} value={command}
          placeholder={texts.deleteFromCartsWhereUpdated} onChange={(e) => setCommand(e.target.value)} />
      ) : (
        <TextField label={texts.endpoint} type="url" required maxLength={500} value={endpoint} placeholder={texts.httpsExampleComNightly}
          hint={texts.itGetsAPOSTThat} onChange={(e) => setEndpoint(e.target.value)} />
      )}
      <SelectField label={texts.ifTheRunBeforeIs} value={overlap}
        onChange={(e) => setOverlap(e.target.value === 'queue' ? 'queue' : 'skip')}>
        <option value="skip">{texts.skipThisOne}</option>
        <option value="queue">{texts.runOnceAfterwards}</option>
      </SelectField>
      <TextField label={texts.timeLimitInSeconds} type="number" min={1} max={600} step={1} required value={timeout}
        onChange={(e) => setTimeout(e.target.value)} />
      <CheckField label={texts.active} checked={active} hint={texts.otherwiseItRunsOnRequest} onChange={(e) => setActive(e.target.checked)} />
    </FormDialog>
  )
}
