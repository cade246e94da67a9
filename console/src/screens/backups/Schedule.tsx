import { useState, type FormEvent } from 'react'
import { useQuery } from '@tanstack/react-query'
import { texts } from '#texts/backups'
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
const keepLabels = { keepLast: texts.newest, keepDaily: texts.days, keepWeekly: texts.weeks, keepMonthly: texts.months }
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
      toast(texts.theScheduleIsSaved)
    } catch (error) {
      setFailure(error)
    } finally {
      setBusy(false)
    }
  }

  return (
    <form onSubmit={(e) => void save(e)}>
      <Stack>
        <p>{schedule === null ? texts.backupsAreMadeByHand : <>{texts.theNextBackupIsDue(<Time at={schedule.nextRunAt} />)}</>}</p>
        <SelectField label={texts.makeABackup} value={own ? 'own' : cron} onChange={(e) => {
          setOwn(e.target.value === 'own')
          if (e.target.value !== 'own') setCron(e.target.value)
        }}>
          {presets.map((p) => <option key={p} value={p}>{cronText(p)}</option>)}
          <option value="own">{texts.byACronExpression}</option>
        </SelectField>
        {own && (
          <TextField label={texts.cronExpression} required value={cron} spellCheck={false} onChange={(e) => setCron(e.target.value)}
            hint={texts.minuteHourDayOfThe(cronText(cron))} />
        )}
        <TextField label={texts.timeZone} required value={zone} onChange={(e) => setZone(e.target.value)} />
        <fieldset className={css.choices}>
          <legend>{texts.keepScheduledBackups}</legend>
          <div className={css.four}>
            {keeps.map((k) => (
              <TextField key={k} label={keepLabels[k]} type="number" min={0} max={1000} required value={kept[k] ?? ''}
                onChange={(e) => setKept((former) => ({ ...former, [k]: e.target.value }))} />
            ))}
          </div>
          <p className={css.note}>
            {texts.aBackupIsKeptWhile}
          </p>
        </fieldset>
        <CheckField label={texts.proveEachBackup} checked={prove} onChange={(e) => setProve(e.target.checked)}
          hint={texts.restoresItIntoATemporary} />
        <TextField label={texts.proveTheNewestOneAgain} type="number" min={0} max={365} required value={days}
          hint={texts.zeroForNever} onChange={(e) => setDays(e.target.value)} />
        {failure !== null && <FailureNote error={failure} />}
        <Row>
          <Button needs="updateBackupSchedule" type="submit" look="primary" busy={busy}>
            {schedule === null ? texts.createSchedule : texts.saveSchedule}
          </Button>
          {schedule !== null && (
            <Button needs="deleteBackupSchedule" look="danger" onClick={() => setAsks(true)}>
              {texts.deleteSchedule}
            </Button>
          )}
        </Row>
      </Stack>
      {asks && (
        <Confirm title={texts.deleteTheSchedule} open onClose={() => setAsks(false)} action={texts.deleteSchedule} onSubmit={async () => {
          await read(api.DELETE('/projects/{projectUUID}/backup-schedule', { params }))
          await queries.invalidateQueries({ queryKey: ['backup-schedule', project] })
        }}>
          <p>{texts.noMoreBackupsAreMade}</p>
        </Confirm>
      )}
    </form>
  )
}
