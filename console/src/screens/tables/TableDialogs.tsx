import { useState } from 'react'
import { useQuery } from '@tanstack/react-query'
import { api, inProject, read } from '../../api/client'
import { Confirm, FormDialog } from '../../components/Dialog'
import { CheckField, TextField } from '../../components/Field'
import { toast } from '../../components/Toast'
import type { Entry } from '../../components/tableList'
import { queries } from '../../queries'
import { refreshTables } from '../../components/tableList'
import type { Dependent } from './queries'

interface Props {
  project: string
  entry: Entry
  onClose: () => void
}

export function RenameTable({ project, entry, onClose }: Props) {
  const [name, setName] = useState(entry.name)

  async function rename() {
    const { metadata } = await read(api.PUT('/tables/{tableUUID}/rename', {
      params: { path: { tableUUID: entry.uuid }, header: inProject(project) }, body: { name },
    }))
    await refreshTables(project)
    toast(`${entry.name} is now ${name}${mentionsOf(metadata.mentions)}`)
  }

  return (
    <FormDialog title={`Rename ${entry.name}`} open onClose={onClose} action="Rename table" onSubmit={rename}
      disabled={name === '' || name === entry.name}>
      <TextField label="Name" required value={name} onChange={(e) => setName(e.target.value)} autoFocus
        hint="Letters, digits and underscores. Requests and functions that use the former name must be adjusted." />
    </FormDialog>
  )
}

/** Functions keep their text: they must be changed by hand. */
function mentionsOf(mentions: Dependent[] | undefined): string {
  if (mentions === undefined || mentions.length === 0) return ''
  return `. Adjust ${mentions.map((m) => m.name).join(', ')}`
}

export function DuplicateTable({ project, entry, onClose }: Props) {
  const [name, setName] = useState(`${entry.name}_copy`.replace(/[^A-Za-z0-9_]/g, '_'))
  const [withRows, setWithRows] = useState(true)
  const [key] = useState(() => crypto.randomUUID())

  async function duplicate() {
    await read(api.POST('/tables/{tableUUID}/duplicate', {
      params: { path: { tableUUID: entry.uuid }, header: inProject(project) },
      headers: { 'Idempotency-Key': key },
      body: { name, with_rows: withRows },
    }))
    await refreshTables(project)
    toast(`${name} is created`)
  }

  return (
    <FormDialog title={`Duplicate ${entry.name}`} open onClose={onClose} action="Duplicate table" onSubmit={duplicate}>
      <TextField label="Name of the copy" required value={name} onChange={(e) => setName(e.target.value)} autoFocus />
      <CheckField label="Copy the rows" checked={withRows} onChange={(e) => setWithRows(e.target.checked)} />
      <p>Columns, defaults, constraints, indexes and comments are copied. Policies, grants and triggers are not: the copy is closed to
        users of the project.</p>
    </FormDialog>
  )
}

export function DeleteTable({ project, entry, onClose }: Props) {
  const [cascade, setCascade] = useState(false)
  const dependents = useQuery({
    queryKey: ['tables', project, entry.fullName, 'references'],
    queryFn: () => read(api.GET('/tables/{tableUUID}/constraints', {
      params: { path: { tableUUID: entry.uuid }, header: inProject(project) },
    })),
  })

  async function remove() {
    const { metadata } = await read(api.DELETE('/tables/{tableUUID}', {
      params: { path: { tableUUID: entry.uuid }, header: inProject(project), query: { cascade: cascade ? 'true' : 'false' } },
    }))
    await queries.invalidateQueries({ queryKey: ['tables', project, 'all'] }) // not those of the table that is gone
    const gone = metadata.deleted.map((d) => `${d.kind} ${d.name}`)
    toast(`${entry.name} is deleted${gone.length > 0 ? `, with ${gone.join(', ')}` : ''}`)
  }

  const foreign = dependents.data?.content.filter((c) => c.type === 'foreign').length ?? 0

  return (
    <Confirm title={`Delete ${entry.name}`} open onClose={onClose} action="Delete table" name={entry.name} onSubmit={remove}>
      <p>About {entry.rows.toLocaleString()} rows ({entry.size}) are lost, with the indexes, policies and triggers of the table
        {foreign > 0 && ` and its ${foreign} foreign ${foreign === 1 ? 'key' : 'keys'}`}. Only a backup can bring them back.</p>
      <CheckField label="Delete what depends on it as well" checked={cascade} onChange={(e) => setCascade(e.target.checked)}
        hint="Views, and foreign keys of other tables. Otherwise the deletion is refused while there are any, and names them." />
    </Confirm>
  )
}
