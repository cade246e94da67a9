import { useState } from 'react'
import { useNavigate } from '@tanstack/react-router'
import { useQuery } from '@tanstack/react-query'
import { texts } from '#texts/backups'
import { api, inProject, read } from '../../api/client'
import { timeAgo, Time } from '../../components/Bits'
import { FormDialog } from '../../components/Dialog'
import { CheckField, TextField } from '../../components/Field'
import { Loaded } from '../../components/States'
import { queries } from '../../queries'
import type { Backup } from './backup'
import { lossesSince, lossText } from './losses'
import css from './Backups.module.css'

/** Restores a backup in place or as a new project, after saying what is lost. */
export function RestoreWizard({ project, backup, onClose }: { project: string; backup: Backup; onClose: () => void }) {
  const navigate = useNavigate()
  const [key] = useState(() => crypto.randomUUID())
  const [target, setTarget] = useState<'new' | 'in_place'>('new')
  const [name, setName] = useState('')
  const [typed, setTyped] = useState('')
  const [allowsMissing, setAllowsMissing] = useState(false)
  const known = useQuery({
    queryKey: ['projects', 'one', project, 'name'],
    queryFn: () => read(api.GET('/projects/{projectUUID}', { params: { path: { projectUUID: project } } })),
  })
  const projectName = known.data?.content.name
  const ready = target === 'new' ? name !== '' : projectName !== undefined && typed === projectName

  async function restore() {
    await read(api.POST('/backups/{backupUUID}/restore', {
      params: { header: inProject(project), path: { backupUUID: backup.uuid } },
      body: target === 'new' ? { target, name } : { target, allow_missing: allowsMissing },
      headers: { 'Idempotency-Key': key },
    }))
    await queries.invalidateQueries({ queryKey: ['restores', project] })
    await navigate({ to: `/projects/${project}/backups`, search: { tab: 'restores' } as never })
  }

  return (
    <FormDialog title={texts.restoreBackup} open onClose={onClose} action={texts.restoreBackup} danger={target === 'in_place'}
      disabled={!ready} onSubmit={restore}>
      <p>{texts.theStateOfWithDatabase(<Time at={backup.startedAt} />)}</p>
      <fieldset className={css.choices}>
        <legend>{texts.restoreIt}</legend>
        <Choice checked={target === 'new'} onChoose={() => setTarget('new')} title={texts.asANewProject}
          text={texts.thisProjectStaysAsIt} />
        <Choice checked={target === 'in_place'} onChoose={() => setTarget('in_place')} title={texts.inPlaceOfThisProjects}
          text={texts.requestsWaitForAMoment} />
      </fieldset>
      {target === 'new' ? (
        <TextField label={texts.nameOfTheNewProject} required maxLength={100} value={name} onChange={(e) => setName(e.target.value)} />
      ) : (
        <>
          <Losses project={project} backup={backup} />
          <CheckField label={texts.restoreAlthoughSomeObjectsAre} checked={allowsMissing}
            hint={texts.postgreSQLMayNotCreateAll}
            onChange={(e) => setAllowsMissing(e.target.checked)} />
          <TextField label={texts.typeProjectNameToConfirm(projectName ?? texts.theNameOfTheProject)} value={typed} autoComplete="off"
            onChange={(e) => setTyped(e.target.value)} />
        </>
      )}
    </FormDialog>
  )
}

function Choice({ checked, onChoose, title, text }: { checked: boolean; onChoose: () => void; title: string; text: string }) {
  return (
    <label className={css.choice}>
      <input type="radio" name="target" checked={checked} onChange={onChoose} />
      <span>
        <b>{title}</b>
        <br />
        <span className={css.note}>{text}</span>
      </span>
    </label>
  )
}

function Losses({ project, backup }: { project: string; backup: Backup }) {
  const since = backup.startedAt ?? ''
  const query = useQuery({
    queryKey: ['backups', project, 'losses', backup.uuid],
    queryFn: () => lossesSince(project, since),
    staleTime: 0,
    enabled: since !== '',
  })

  const details = useQuery({
    queryKey: ['backups', project, 'one', backup.uuid],
    queryFn: () => read(api.GET('/backups/{backupUUID}', {
      params: { header: inProject(project), path: { backupUUID: backup.uuid } },
    })),
  })
  const imported = details.data?.metadata.origin === 'imported'

  return (
    <div className={css.warning}>
      <p><b>{texts.whatChangedSinceTheBackup(since !== '' && `, ${timeAgo(new Date(since))},`)}</b></p>
      {imported && <p>{texts.thisBackupWasImportedSo}</p>}
      <Loaded query={query} rows={2}>
        {(losses) => losses.length === 0 ? <p>{texts.noneAreRecordedByThe}</p> : (
          <>
            <ul className={css.losses}>{losses.map((l) => <li key={l.text}>{lossText(l)}</li>)}</ul>
            <p>{texts.soAreFilesUploadedAnd}</p>
          </>
        )}
      </Loaded>
      <p>{texts.thePresentDataIsKept}</p>
    </div>
  )
}
