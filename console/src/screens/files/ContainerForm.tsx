import { useState } from 'react'
import { useQuery } from '@tanstack/react-query'
import { api, inProject, read, type Schemas } from '../../api/client'
import { Dialog, FormDialog } from '../../components/Dialog'
import { CheckField, TextArea, TextField } from '../../components/Field'
import { Loaded } from '../../components/States'
import { queries } from '../../queries'
import { parseSize, parseTypes, sizeText } from './containers'

/** Creates a container, or changes the one with this UUID. */
export function ContainerForm({ project, uuid, onClose }: { project: string; uuid?: string; onClose: () => void }) {
  const query = useQuery({
    queryKey: ['containers', project, 'one', uuid],
    queryFn: () => read(api.GET('/containers/{containerUUID}', {
      params: { header: inProject(project), path: { containerUUID: uuid ?? '' } },
    })),
    enabled: uuid !== undefined,
  })
  if (uuid === undefined) return <Fields project={project} onClose={onClose} />
  if (query.data === undefined) {
    return <Dialog title="Edit container" open onClose={onClose}><Loaded query={query}>{() => null}</Loaded></Dialog>
  }

  return <Fields project={project} onClose={onClose} container={query.data.content}
    types={query.data.metadata.allowedMimeTypes} />
}

function Fields({ project, container, types = [], onClose }: {
  project: string
  container?: Schemas['Container']
  types?: string[]
  onClose: () => void
}) {
  const [key] = useState(() => crypto.randomUUID())
  const [name, setName] = useState(container?.name ?? '')
  const [description, setDescription] = useState(container?.description ?? '')
  const [isPublic, setPublic] = useState(container?.isPublic ?? false)
  const [limit, setLimit] = useState(container ? sizeText(container.maxFileSize) : '')
  const [accepted, setAccepted] = useState(types.join('\n'))
  const size = parseSize(limit)
  const badLimit = limit !== '' && size === undefined

  async function save() {
    const body = {
      name, description, is_public: isPublic, allowed_mime_types: parseTypes(accepted),
      ...(size !== undefined && { max_file_size: size }),
    }
    const header = inProject(project)
    await (container === undefined
      ? read(api.POST('/containers', { params: { header }, body, headers: { 'Idempotency-Key': key } }))
      : read(api.PUT('/containers/{containerUUID}', { params: { header, path: { containerUUID: container.uuid } }, body })))
    await queries.invalidateQueries({ queryKey: ['containers', project] })
  }

  const verb = container === undefined ? 'Create container' : 'Save container'
  return (
    <FormDialog title={container === undefined ? 'Create container' : `Edit ${container.name}`} open onClose={onClose}
      action={verb} onSubmit={save} disabled={badLimit}>
      <TextField label="Name" required value={name} autoFocus hint="3 to 63 letters, digits, _ or -."
        onChange={(e) => setName(e.target.value)} />
      <TextField label="Description" value={description} maxLength={500} onChange={(e) => setDescription(e.target.value)} />
      <CheckField label="Everyone can read its files" checked={isPublic}
        hint="Without a token, by the name of the file. Otherwise policies decide."
        onChange={(e) => setPublic(e.target.checked)} />
      <TextField label="Size limit of a file" value={limit} placeholder="50 MB"
        hint={container ? 'Existing files stay, even if they are larger.' : 'Empty: the default of this server.'}
        error={badLimit ? 'Enter a size such as 50 MB or 2 GB.' : undefined} onChange={(e) => setLimit(e.target.value)} />
      <TextArea label="Accepted media types" value={accepted} rows={3} placeholder={'image/*\napplication/pdf'}
        hint="One a line. Empty accepts all." onChange={(e) => setAccepted(e.target.value)} />
    </FormDialog>
  )
}
