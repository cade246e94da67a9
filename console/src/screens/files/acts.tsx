/** Dialogs of what a person does with files and folders. */

import { useState } from 'react'
import { texts } from '#texts/files'
import { api, inProject, read, sendJSON } from '../../api/client'
import { Copyable, Time } from '../../components/Bits'
import { Button } from '../../components/Button'
import { useContainers } from '../../components/choices'
import { Confirm, Dialog, FormDialog } from '../../components/Dialog'
import { SelectField, TextField } from '../../components/Field'
import { Row, Stack } from '../../components/Page'
import { FailureNote } from '../../components/States'
import { toast } from '../../components/Toast'
import type { FileRef } from './read'

export type FileAct =
  | { kind: 'move' | 'copy' | 'sign'; file: FileRef }
  | { kind: 'delete'; files: FileRef[] }
  | { kind: 'deleteFolder'; folder: string }

interface Props {
  project: string
  container: string
  bucket: string
  onClose: () => void
}

/** Renames, moves or copies a file, also into another container. */
export function MoveFile({ project, container, bucket, act, onClose, onDone }: Props & {
  act: { kind: FileAct['kind']; file: FileRef }
  onDone: () => void
}) {
  const copies = act.kind === 'copy'
  const [name, setName] = useState(act.file.fullName)
  const [target, setTarget] = useState(container)
  const containers = useContainers(project)
  const known = containers.data ?? []

  async function save() {
    if (copies) {
      await sendJSON(`/projects/${project}/storage/v1/object/copy`, {
        method: 'POST',
        json: {
          bucketId: bucket, sourceKey: act.file.fullName, destinationKey: name,
          ...(target !== container && { destinationBucket: known.find((c) => c.uuid === target)?.name }),
        },
      })
    } else {
      await read(api.PUT('/containers/{containerUUID}/files/{fileUUID}', {
        params: { header: inProject(project), path: { containerUUID: container, fileUUID: act.file.uuid } },
        body: { full_file_name: name, ...(target !== container && { container_uuid: target }) },
      }))
    }
    onDone()
  }

  return (
    <FormDialog title={copies ? texts.copyFile : texts.renameOrMoveFile} open onClose={onClose}
      action={copies ? texts.copyFile : texts.saveName} onSubmit={save}
      disabled={name === '' || (name === act.file.fullName && target === container)}>
      <TextField label={texts.name} value={name} autoFocus hint={texts.withItsFoldersSuchAs}
        onChange={(e) => setName(e.target.value)} />
      <SelectField label={texts.container} value={target} onChange={(e) => setTarget(e.target.value)}>
        {known.length === 0 && <option value={container}>{bucket}</option>}
        {known.map((c) => <option key={c.uuid} value={c.uuid}>{c.name}</option>)}
      </SelectField>
    </FormDialog>
  )
}

const lifetimes = { '300': '5 minutes', '3600': texts.anHour, '86400': 'A day', '604800': 'A week' }

/** Makes a URL that reads one file without a token. */
export function SignFile({ project, container, file, onClose }: Props & { file: FileRef }) {
  const [seconds, setSeconds] = useState('3600')
  const [made, setMade] = useState<{ url: string; expiresAt: string } | null>(null)
  const [failure, setFailure] = useState<unknown>(null)

  async function sign() {
    setFailure(null)
    try {
      const { content } = await read(api.POST('/containers/{containerUUID}/files/{fileUUID}/signed-url', {
        params: { header: inProject(project), path: { containerUUID: container, fileUUID: file.uuid } },
        body: { expires_in: Number(seconds) },
      }))
      setMade({ url: new URL(content.url, location.origin).href, expiresAt: content.expiresAt })
    } catch (error) {
      setFailure(error)
    }
  }

  return (
    <Dialog title={texts.signedURL} open onClose={onClose}>
      <Stack>
        <p>{texts.whoeverHasTheURLCan(file.fullName)}</p>
        <SelectField label={texts.validFor} value={seconds} onChange={(e) => setSeconds(e.target.value)}>
          {Object.entries(lifetimes).map(([value, text]) => <option key={value} value={value}>{text}</option>)}
        </SelectField>
        <Row>
          <Button look="primary" onClick={() => void sign()}>{texts.createSignedURL}</Button>
        </Row>
        {made && (
          <>
            <Copyable value={made.url} label={texts.signedURL2} />
            <p>{texts.expiresTime(<Time at={made.expiresAt} />)}</p>
          </>
        )}
        {failure !== null && <FailureNote error={failure} />}
      </Stack>
    </Dialog>
  )
}

export function DeleteFiles({ project, container, files, onClose, onDone }: Props & {
  files: FileRef[]
  onDone: () => void
}) {
  async function remove() {
    try {
      for (const file of files) {
        await read(api.DELETE('/containers/{containerUUID}/files/{fileUUID}', {
          params: { header: inProject(project), path: { containerUUID: container, fileUUID: file.uuid } },
        }))
      }
    } finally {
      onDone() // those before a failure are deleted
    }
  }

  const title = files.length === 1 ? texts.deleteThisFile : texts.deleteCountFiles(files.length)
  return (
    <Confirm title={title} open onClose={onClose} action={files.length === 1 ? texts.deleteFile : texts.deleteFiles} onSubmit={remove}>
      <p>{texts.countTheirURLsStopWorking(files.length === 1 ? texts.fullNameIsLost(String(files[0]?.fullName)) : texts.countFilesAreLost(files.length))}</p>
    </Confirm>
  )
}

export function DeleteFolder({ project, container, folder, onClose, onDone }: Props & {
  folder: string
  onDone: () => void
}) {
  async function remove() {
    const { content } = await read(api.DELETE('/containers/{containerUUID}/folders/{folder}', {
      params: { header: inProject(project), path: { containerUUID: container, folder } },
    }))
    toast(content.files === 1 ? texts.oneFileIsDeleted : texts.filesAreDeleted(content.files))
    onDone()
  }

  return (
    <Confirm title={texts.deleteThisFolder} open onClose={onClose} action={texts.deleteFolder} name={folder} onSubmit={remove}>
      <p>{texts.allFilesInAndIts(folder)}</p>
    </Confirm>
  )
}
