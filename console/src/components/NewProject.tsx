import { useState } from 'react'
import { useNavigate } from '@tanstack/react-router'
import { texts } from '#texts/components'
import { api, read } from '../api/client'
import { queries } from '../queries'
import { FormDialog } from './Dialog'
import { TextField } from './Field'

/** Creates a project, in the user's own organization unless another is given, and opens it. */
export function NewProject({ organization, onClose }: { organization?: string; onClose: () => void }) {
  const navigate = useNavigate()
  const [name, setName] = useState('')
  const [description, setDescription] = useState('')
  const [idempotency] = useState(() => crypto.randomUUID())

  async function create() {
    const { content } = await read(api.POST('/projects', {
      body: {
        name,
        ...(description !== '' && { description }),
        ...(organization !== undefined && { organization_uuid: organization }),
      },
      headers: { 'Idempotency-Key': idempotency },
    }))
    await queries.invalidateQueries({ queryKey: ['projects'] })
    await navigate({ to: `/projects/${content.uuid}` })
  }

  return (
    <FormDialog title={texts.newProject} open onClose={onClose} action={texts.createProject} onSubmit={create}>
      <TextField label={texts.name} required value={name} onChange={(e) => setName(e.target.value)} autoFocus />
      <TextField label={texts.description} value={description} onChange={(e) => setDescription(e.target.value)} />
    </FormDialog>
  )
}
