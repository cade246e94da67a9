/** Dialogs of what a person does with a backup. */

import { useRef, useState } from 'react'
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
    <Confirm title="Delete this backup" open onClose={onClose} action="Delete backup" name="delete" onSubmit={remove}>
      <p>The state of the project from <Time at={backup.startedAt} /> can no longer be restored from it. This cannot be undone.</p>
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
    toast(`The backup is downloaded, ${formatBytes(bytes.size)}.`)
  }

  return (
    <FormDialog title="Download backup" open onClose={onClose} action="Download backup" onSubmit={save}
      disabled={(protection === 'passphrase' && secret.length < 12) || (protection === 'recipient' && secret === '')}>
      <p>One archive with the database, the files and the forms. It can be imported here or by another Socle.</p>
      <SelectField label="Protection" value={protection} onChange={(e) => {
        setProtection(e.target.value as Protection)
        setSecret('')
      }}>
        <option value="passphrase">Passphrase</option>
        <option value="recipient">Only for another Socle (age key)</option>
        <option value="none">None</option>
      </SelectField>
      {protection === 'passphrase' && (
        <TextField label="Passphrase" type="password" minLength={12} autoComplete="new-password" value={secret}
          hint="At least 12 characters. Without it, nobody can read the archive." onChange={(e) => setSecret(e.target.value)} />
      )}
      {protection === 'recipient' && (
        <TextField label="Key of the other Socle" value={secret} placeholder="age1…" spellCheck={false}
          hint="GET /backups/recipient tells it there." onChange={(e) => setSecret(e.target.value.trim())} />
      )}
      {protection === 'none' && <p className={css.warning}>Whoever gets the archive can read all data of the project.</p>}
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
      toast('The backup is imported.')
      await queries.invalidateQueries({ queryKey: ['backups', project] })
    } finally {
      setSent(null)
    }
  }

  return (
    <FormDialog title="Import backup" open action="Import backup" disabled={file === null} onSubmit={send} onClose={() => {
      controller.current?.abort()
      onClose()
    }}>
      <p>The archive becomes a backup of this project. Nothing changes until you restore it.</p>
      <Field label="Archive">
        {(slot) => (
          <input {...slot} type="file" className={inputClass} accept=".tar,.age,application/x-tar"
            onChange={(e) => setFile(e.target.files?.[0] ?? null)} />
        )}
      </Field>
      <TextField label="Passphrase" type="password" autoComplete="off" value={passphrase}
        hint="Empty if the archive has none, or is encrypted for this Socle." onChange={(e) => setPassphrase(e.target.value)} />
      {sent !== null && file !== null && (
        <div role="status">
          <progress className={css.wide} aria-label="Progress of the import" max={file.size} value={sent} />
          <span>{sent < file.size ? `${formatBytes(sent)} of ${formatBytes(file.size)}` : 'The server checks the archive.'}</span>
        </div>
      )}
    </FormDialog>
  )
}
