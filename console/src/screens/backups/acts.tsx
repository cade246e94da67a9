/** Dialogs of what a person does with a backup. */

import { useRef, useState } from 'react'
import { texts } from '#texts/backups'
import { api, inProject, read } from '../../api/client'
import { formatBytes, Time } from '../../components/Bits'
import { Confirm, FormDialog } from '../../components/Dialog'
import { Field, inputClass, SelectField, TextField } from '../../components/Field'
import { toast } from '../../components/Toast'
import { download, saveAs, upload } from '../../components/transfer'
import { queries } from '../../queries'
import type { Backup } from './backup'
import css from './Backups.module.css'

interface Props {
  project: string
  onClose: () => void
}

export function DeleteBackup({ project, backup, onClose }: Props & { backup: Backup }) {
  async function remove() {
    await read(api.DELETE('/backups/{backupUUID}', {
      params: { header: inProject(project), path: { backupUUID: backup.uuid } },
    }))
    await queries.invalidateQueries({ queryKey: ['backups', project] })
  }

  return (
    <Confirm title={texts.deleteThisBackup} open onClose={onClose} action={texts.deleteBackup} name="delete" onSubmit={remove}>
      <p>{texts.theStateOfTheProject(<Time at={backup.startedAt} />)}</p>
    </Confirm>
  )
}

type Protection = 'passphrase' | 'recipient' | 'none'

/** Downloads a backup as an archive that any Socle imports. */
export function DownloadBackup({ project, backup, onClose }: Props & { backup: Backup }) {
  const [protection, setProtection] = useState<Protection>('passphrase')
  const [secret, setSecret] = useState('')

  async function save() {
    const body = protection === 'none' ? { encryption: 'none' } : { [protection]: secret }
    const bytes = await download(`/backups/${backup.uuid}/download`, {
      method: 'POST', headers: { ...inProject(project), 'Content-Type': 'application/json' }, body: JSON.stringify(body),
    })
    const day = (backup.startedAt ?? '').slice(0, 10)
    saveAs(bytes, `backup-${day}.tar${protection === 'none' ? '' : '.age'}`)
    toast(texts.theBackupIsDownloadedCount(formatBytes(bytes.size)))
  }

  return (
    <FormDialog title={texts.downloadBackup} open onClose={onClose} action={texts.downloadBackup} onSubmit={save}
      disabled={(protection === 'passphrase' && secret.length < 12) || (protection === 'recipient' && secret === '')}>
      <p>{texts.oneArchiveWithTheDatabase}</p>
      <SelectField label={texts.protection} value={protection} onChange={(e) => {
        setProtection(e.target.value as Protection)
        setSecret('')
      }}>
        <option value="passphrase">{texts.passphrase}</option>
        <option value="recipient">{texts.onlyForAnotherSocleAge}</option>
        <option value="none">{texts.none}</option>
      </SelectField>
      {protection === 'passphrase' && (
        <TextField label={texts.passphrase} type="password" minLength={12} autoComplete="new-password" value={secret}
          hint={texts.atLeastTwelveCharactersWithout} onChange={(e) => setSecret(e.target.value)} />
      )}
      {protection === 'recipient' && (
        <TextField label={texts.keyOfTheOtherSocle} value={secret} placeholder={texts.age1} spellCheck={false}
          hint={texts.getBackupsRecipientTellsIt} onChange={(e) => setSecret(e.target.value.trim())} />
      )}
      {protection === 'none' && <p className={css.warning}>{texts.whoeverGetsTheArchiveCan}</p>}
    </FormDialog>
  )
}

/** Uploads an archive, which becomes a backup of the project. */
export function ImportBackup({ project, onClose }: Props) {
  const [file, setFile] = useState<File | null>(null)
  const [passphrase, setPassphrase] = useState('')
  const [sent, setSent] = useState<number | null>(null)
  const controller = useRef<AbortController | null>(null)

  async function send() {
    if (file === null) return

    controller.current = new AbortController()
    setSent(0)
    try {
      await upload({
        method: 'POST', path: '/backups/import', body: file, signal: controller.current.signal, onProgress: setSent,
        headers: {
          ...inProject(project), 'Content-Type': 'application/octet-stream',
          ...(passphrase !== '' && { 'X-Passphrase': passphrase }),
        },
      })
      toast(texts.theBackupIsImported)
      await queries.invalidateQueries({ queryKey: ['backups', project] })
    } finally {
      setSent(null)
    }
  }

  return (
    <FormDialog title={texts.importBackup} open action={texts.importBackup} disabled={file === null} onSubmit={send} onClose={() => {
      controller.current?.abort()
      onClose()
    }}>
      <p>{texts.theArchiveBecomesABackup}</p>
      <Field label={texts.archive}>
        {(slot) => (
          <input {...slot} type="file" className={inputClass} accept=".tar,.age,application/x-tar"
            onChange={(e) => setFile(e.target.files?.[0] ?? null)} />
        )}
      </Field>
      <TextField label={texts.passphrase} type="password" autoComplete="off" value={passphrase}
        hint={texts.emptyIfTheArchiveHas} onChange={(e) => setPassphrase(e.target.value)} />
      {sent !== null && file !== null && (
        <div role="status">
          <progress className={css.wide} aria-label={texts.progressOfTheImport} max={file.size} value={sent} />
          <span>{sent < file.size ? texts.sentOfCount(formatBytes(sent), formatBytes(file.size)) : texts.theServerChecksTheArchive}</span>
        </div>
      )}
    </FormDialog>
  )
}
