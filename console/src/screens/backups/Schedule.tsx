import { useState, type FormEvent } from 'react'
import { useQuery } from '@tanstack/react-query'
import { api, read, type Schemas } from '../../api/client'
import { ApiError } from '../../api/failure'
import { Time } from '../../components/Bits'
import { Button } from '../../components/Button'
import { Confirm } from '../../components/Dialog'
import { CheckField, SelectField, TextField } from '../../components/Field'
import { Row, Stack } from '../../components/Page'
import { FailureNote, Loaded } from '../../components/States'
import { toast } from '../../components/Toast'
import { queries } from '../../queries'
import { cronText } from './backup'
import css from './Backups.module.css'

type BackupSchedule = Schemas['BackupSchedule']

const presets = ['0 3 * * *', '0 * * * *', '0 3 * * 0']

/** When backups are made, how long they are kept, and whether they are proven. */
export function Schedule({ project }: { project: string }) {
  const path = { projectUUID: project }
  const query = useQuery({
    queryKey: ['backup-schedule', project],
    queryFn: async (): Promise<{ schedule: BackupSchedule | null }> => {
      try {
        return { schedule: (await read(api.GET('/projects/{projectUUID}/backup-schedule', { params: { path } }))).content }
      } catch (error) {
        if (error instanceof ApiError && error.code === 'not_found') return { schedule: null }
        throw error
      }
    },
  })

  return (
    <Loaded query={query}>
      {({ schedule }) => <ScheduleForm key={schedule?.updatedAt ?? 'none'} project={project} schedule={schedule} />}
    </Loaded>
  )
}

const keeps = ['keepLast', 'keepDaily', 'keepWeekly', 'keepMonthly'] as const
const keepLabels = { keepLast: 'Newest', keepDaily: 'Days', keepWeekly: 'Weeks', keepMonthly: 'Months' }
const defaults = { keepLast: 3, keepDaily: 7, keepWeekly: 4, keepMonthly: 6 }

function ScheduleForm({ project, schedule }: { project: string; schedule: BackupSchedule | null }) {
  const [cron, setCron] = useState(schedule?.cron ?? presets[0]!)
  const [own, setOwn] = useState(!presets.includes(schedule?.cron ?? presets[0]!))
  const [zone, setZone] = useState(schedule?.timezone ?? Intl.DateTimeFormat().resolvedOptions().timeZone)
  const [kept, setKept] = useState(() => Object.fromEntries(keeps.map((k) => [k, String((schedule ?? defaults)[k])])))
  const [prove, setProve] = useState(schedule?.prove ?? true)
  const [days, setDays] = useState(String(schedule?.proveEveryDays ?? 7))
  const [busy, setBusy] = useState(false)
  const [asks, setAsks] = useState(false)
  const [failure, setFailure] = useState<unknown>(null)
  const params = { path: { projectUUID: project } }

  async function save(e: FormEvent) {
    e.preventDefault()
    setBusy(true)
    setFailure(null)
    try {
      await read(api.PUT('/projects/{projectUUID}/backup-schedule', {
        params,
        body: {
          cron, timezone: zone, prove, prove_every_days: Number(days), keep_last: Number(kept.keepLast),
          keep_daily: Number(kept.keepDaily), keep_weekly: Number(kept.keepWeekly), keep_monthly: Number(kept.keepMonthly),
        },
      }))
      await queries.invalidateQueries({ queryKey: ['backup-schedule', project] })
      toast('The schedule is saved.')
    } catch (error) {
      setFailure(error)
    } finally {
      setBusy(false)
    }
  }

  return (
    <form onSubmit={(e) => void save(e)}>
      <Stack>
        <p>{schedule === null ? 'Backups are made by hand only.' : <>The next backup is due <Time at={schedule.nextRunAt} />.</>}</p>
        <SelectField label="Make a backup" value={own ? 'own' : cron} onChange={(e) => {
          setOwn(e.target.value === 'own')
          if (e.target.value !== 'own') setCron(e.target.value)
        }}>
          {presets.map((p) => <option key={p} value={p}>{cronText(p)}</option>)}
          <option value="own">By a cron expression</option>
        </SelectField>
        {own && (
          <TextField label="Cron expression" required value={cron} spellCheck={false} onChange={(e) => setCron(e.target.value)}
            hint={`Minute, hour, day of the month, month, day of the week: ${cronText(cron)}`} />
        )}
        <TextField label="Time zone" required value={zone} onChange={(e) => setZone(e.target.value)} />
        <fieldset className={css.choices}>
          <legend>Keep scheduled backups</legend>
          <div className={css.four}>
            {keeps.map((k) => (
              <TextField key={k} label={keepLabels[k]} type="number" min={0} max={1000} required value={kept[k] ?? ''}
                onChange={(e) => setKept((former) => ({ ...former, [k]: e.target.value }))} />
            ))}
          </div>
          <p className={css.note}>
            A backup is kept while one of the rules keeps it: it is among the newest, or the newest one of its day, week or month.
            The last proven one is always kept. All zero keeps all.
          </p>
        </fieldset>
        <CheckField label="Prove each backup" checked={prove} onChange={(e) => setProve(e.target.checked)}
          hint="Restores it into a temporary database and compares." />
        <TextField label="Prove the newest one again after days" type="number" min={0} max={365} required value={days}
          hint="0 for never." onChange={(e) => setDays(e.target.value)} />
        {failure !== null && <FailureNote error={failure} />}
        <Row>
          <Button needs="updateBackupSchedule" type="submit" look="primary" busy={busy}>
            {schedule === null ? 'Create schedule' : 'Save schedule'}
          </Button>
          {schedule !== null && (
            <Button needs="deleteBackupSchedule" look="danger" onClick={() => setAsks(true)}>
              Delete schedule
            </Button>
          )}
        </Row>
      </Stack>
      {asks && (
        <Confirm title="Delete the schedule" open onClose={() => setAsks(false)} action="Delete schedule" onSubmit={async () => {
          await read(api.DELETE('/projects/{projectUUID}/backup-schedule', { params }))
          await queries.invalidateQueries({ queryKey: ['backup-schedule', project] })
        }}>
          <p>No more backups are made by themselves. Existing ones remain until they are deleted.</p>
        </Confirm>
      )}
    </form>
  )
}
