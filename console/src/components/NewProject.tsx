import { useState } from 'react'
import { useNavigate } from '@tanstack/react-router'
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
    <FormDialog title="New project" open onClose={onClose} action="Create project" onSubmit={create}>
      <TextField label="Name" required value={name} onChange={(e) => setName(e.target.value)} autoFocus />
      <TextField label="Description" value={description} onChange={(e) => setDescription(e.target.value)} />
    </FormDialog>
  )
}
