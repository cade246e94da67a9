/** Dialogs of what a person does with files and folders. */

import { useState } from 'react'
import { useQuery } from '@tanstack/react-query'
import { api, inProject, read, sendJSON } from '../../api/client'
import { Copyable, Time } from '../../components/Bits'
import { Button } from '../../components/Button'
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
  const containers = useQuery({
    queryKey: ['containers', project, 'names'],
    queryFn: () => read(api.GET('/containers', {
      params: { header: inProject(project), query: { limit: 100, sort: 'name' } },
    })),
  })
  const known = containers.data?.content ?? []

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
    <FormDialog title={copies ? 'Copy file' : 'Rename or move file'} open onClose={onClose}
      action={copies ? 'Copy file' : 'Save name'} onSubmit={save}
      disabled={name === '' || (name === act.file.fullName && target === container)}>
      <TextField label="Name" value={name} autoFocus hint="With its folders, such as 2026/spring/cover.png."
        onChange={(e) => setName(e.target.value)} />
      <SelectField label="Container" value={target} onChange={(e) => setTarget(e.target.value)}>
        {known.length === 0 && <option value={container}>{bucket}</option>}
        {known.map((c) => <option key={c.uuid} value={c.uuid}>{c.name}</option>)}
      </SelectField>
    </FormDialog>
  )
}

const lifetimes = { '300': '5 minutes', '3600': 'An hour', '86400': 'A day', '604800': 'A week' }

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
    <Dialog title="Signed URL" open onClose={onClose}>
      <Stack>
        <p>Whoever has the URL can read {file.fullName} until it expires.</p>
        <SelectField label="Valid for" value={seconds} onChange={(e) => setSeconds(e.target.value)}>
          {Object.entries(lifetimes).map(([value, text]) => <option key={value} value={value}>{text}</option>)}
        </SelectField>
        <Row>
          <Button look="primary" onClick={() => void sign()}>Create signed URL</Button>
        </Row>
        {made && (
          <>
            <Copyable value={made.url} label="signed URL" />
            <p>Expires <Time at={made.expiresAt} />.</p>
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

  const title = files.length === 1 ? 'Delete this file' : `Delete ${files.length} files`
  return (
    <Confirm title={title} open onClose={onClose} action={files.length === 1 ? 'Delete file' : 'Delete files'} onSubmit={remove}>
      <p>{files.length === 1 ? `${files[0]?.fullName} is lost.` : `${files.length} files are lost.`} Their URLs stop working.</p>
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
    toast(content.files === 1 ? 'One file is deleted.' : `${content.files} files are deleted.`)
    onDone()
  }

  return (
    <Confirm title="Delete this folder" open onClose={onClose} action="Delete folder" name={folder} onSubmit={remove}>
      <p>All files in {folder} and its folders are lost. This cannot be undone, except by a restore of a backup.</p>
    </Confirm>
  )
}
