import { useState } from 'react'
import { useQuery } from '@tanstack/react-query'
import { texts } from '#texts/files'
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
    return <Dialog title={texts.editContainer} open onClose={onClose}><Loaded query={query}>{() => null}</Loaded></Dialog>
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

  const verb = container === undefined ? texts.createContainer : texts.saveContainer
  return (
    <FormDialog title={container === undefined ? texts.createContainer : texts.editName(container.name)} open onClose={onClose}
      action={verb} onSubmit={save} disabled={badLimit}>
      <TextField label={texts.name} required value={name} autoFocus hint={texts.threeToThe63LettersDigits}
        onChange={(e) => setName(e.target.value)} />
      <TextField label={texts.description} value={description} maxLength={500} onChange={(e) => setDescription(e.target.value)} />
      <CheckField label={texts.everyoneCanReadItsFiles} checked={isPublic}
        hint={texts.withoutATokenByThe}
        onChange={(e) => setPublic(e.target.checked)} />
      <TextField label={texts.sizeLimitOfAFile} value={limit} placeholder={texts.the50MB}
        hint={container ? texts.existingFilesStayEvenIf : texts.emptyTheDefaultOfThis}
        error={badLimit ? texts.enterASizeSuchAs : undefined} onChange={(e) => setLimit(e.target.value)} />
      <TextArea label={texts.acceptedMediaTypes} value={accepted} rows={3} placeholder={texts.imageApplicationPdf}
        hint={texts.oneALineEmptyAccepts} onChange={(e) => setAccepted(e.target.value)} />
    </FormDialog>
  )
}
