import { useState } from 'react'
import { useQuery } from '@tanstack/react-query'
import { api, read } from '../../api/client'
import { Copyable } from '../../components/Bits'
import { Button } from '../../components/Button'
import { FormDialog } from '../../components/Dialog'
import { CheckField, SelectField } from '../../components/Field'
import { Card, Row } from '../../components/Page'
import { Loaded } from '../../components/States'
import { queries } from '../../queries'
import { SettingsForm } from '../../components/SettingsForm'
import { requestNames, type Spec } from '../../components/specs'

const specs: Spec[] = [
  { name: 'name', label: 'Name', kind: 'text' },
  { name: 'description', label: 'Description', kind: 'text' },
  { name: 'backup_before_destructive', label: 'Back up before destructive acts', kind: 'check',
    hint: 'Deleting tables and other destructive operations make a backup first. The project cannot be purged meanwhile.' },
]

/** Name, description, and who may use new tables. */
export function General({ project }: { project: string }) {
  const query = useQuery({
    queryKey: ['project', project],
    queryFn: () => read(api.GET('/projects/{projectUUID}', { params: { path: { projectUUID: project } } })),
  })

  return (
    <>
      <Loaded query={query}>
        {({ content }) => (
          <SettingsForm title="Project" needs="updateProject" specs={specs} values={requestNames(content)} save={async (body) => {
            await read(api.PUT('/projects/{projectUUID}', { params: { path: { projectUUID: project } }, body }))
            await queries.invalidateQueries({ queryKey: ['project', project] })
            await queries.invalidateQueries({ queryKey: ['projects'] })
          }} />
        )}
      </Loaded>
      <Card title="Addresses">
        <div>Project UUID <Copyable value={project} label="the project UUID" /></div>
        <div>Address for client libraries <Copyable value={`${location.origin}/projects/${project}`} label="the address" /></div>
      </Card>
      <DefaultPrivileges project={project} />
    </>
  )
}

const modes = {
  closed: 'Closed: only service_role may use new tables and functions.',
  supabase: 'As in Supabase: anon and authenticated may use new tables of schema public as far as policies allow, and new functions.',
  custom: 'Custom: SQL has set something else.',
}

function DefaultPrivileges({ project }: { project: string }) {
  const [changes, setChanges] = useState(false)
  const query = useQuery({
    queryKey: ['default privileges', project],
    queryFn: () => read(api.GET('/projects/{projectUUID}/default-privileges', {
      params: { path: { projectUUID: project } },
    })),
  })

  return (
    <Card title="Default privileges" lead="Who may use new tables and functions through the API."
      actions={<Button needs="updateDefaultPrivileges" onClick={() => setChanges(true)}>Change privileges</Button>}>
      <Loaded query={query} rows={2}>
        {({ content: { mode, closedTables } }) => (
          <>
            <p>{modes[mode]}</p>
            {closedTables.length > 0 && (
              <details>
                <summary>
                  {closedTables.length === 1 ? '1 table gives' : `${closedTables.length.toLocaleString()} tables give`} anon
                  and authenticated no privileges
                </summary>
                <Row>{closedTables.map((t) => <code key={t}>{t}</code>)}</Row>
              </details>
            )}
            {changes && (
              <ChangePrivileges project={project} current={mode === 'supabase' ? 'supabase' : 'closed'}
                onClose={() => setChanges(false)} />
            )}
          </>
        )}
      </Loaded>
    </Card>
  )
}

function ChangePrivileges({ project, current, onClose }: {
  project: string
  current: 'closed' | 'supabase'
  onClose: () => void
}) {
  const [mode, setMode] = useState(current)
  const [existing, setExisting] = useState(false)

  return (
    <FormDialog title="Default privileges" open onClose={onClose} action="Change privileges" onSubmit={async () => {
      await read(api.PUT('/projects/{projectUUID}/default-privileges', {
        params: { path: { projectUUID: project } },
        body: { mode, ...(mode === 'supabase' && { existing }) },
      }))
      await queries.invalidateQueries({ queryKey: ['default privileges', project] })
    }}>
      <SelectField label="New tables and functions" value={mode} hint={modes[mode]}
        onChange={(e) => setMode(e.target.value === 'supabase' ? 'supabase' : 'closed')}>
        <option value="closed">Closed</option>
        <option value="supabase">As in Supabase</option>
      </SelectField>
      {mode === 'supabase' && (
        <CheckField label="Also for what exists already" checked={existing} onChange={(e) => setExisting(e.target.checked)}
          hint="Also where the privileges were revoked. Tables without row level security are left out." />
      )}
    </FormDialog>
  )
}
