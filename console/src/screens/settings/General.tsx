import { useState } from 'react'
import { useQuery } from '@tanstack/react-query'
import { texts } from '#texts/settings'
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
  { name: 'name', label: texts.name, kind: 'text' },
  { name: 'description', label: texts.description, kind: 'text' },
  { name: 'backup_before_destructive', label: texts.backUpBeforeDestructiveActs, kind: 'check',
    hint: texts.deletingTablesAndOtherDestructive },
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
          <SettingsForm title={texts.project} needs="updateProject" specs={specs} values={requestNames(content)} save={async (body) => {
            await read(api.PUT('/projects/{projectUUID}', { params: { path: { projectUUID: project } }, body }))
            await queries.invalidateQueries({ queryKey: ['project', project] })
            await queries.invalidateQueries({ queryKey: ['projects'] })
          }} />
        )}
      </Loaded>
      <Card title={texts.addresses}>
        <div>{texts.projectUUIDCopyable(<Copyable value={project} label={texts.theProjectUUID} />)}</div>
        <div>{texts.addressForClientLibrariesCopyable(<Copyable value={`${location.origin}/projects/${project}`} label={texts.theAddress} />)}</div>
      </Card>
      <DefaultPrivileges project={project} />
    </>
  )
}

const modes = {
  closed: texts.closedOnlyServiceRoleMay,
  supabase: texts.asInSupabaseAnonAnd,
  custom: texts.customSQLHasSetSomething,
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
    <Card title={texts.defaultPrivileges} lead={texts.whoMayUseNewTables}
      actions={<Button needs="updateDefaultPrivileges" onClick={() => setChanges(true)}>{texts.changePrivileges}</Button>}>
      <Loaded query={query} rows={2}>
        {({ content: { mode, closedTables } }) => (
          <>
            <p>{modes[mode]}</p>
            {closedTables.length > 0 && (
              <details>
                <summary>
                  {texts.anonAndAuthenticatedNoPrivileges(closedTables.length === 1 ? texts.oneTableGives : texts.countTablesGive(closedTables.length.toLocaleString()))}
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
    <FormDialog title={texts.defaultPrivileges} open onClose={onClose} action={texts.changePrivileges} onSubmit={async () => {
      await read(api.PUT('/projects/{projectUUID}/default-privileges', {
        params: { path: { projectUUID: project } },
        body: { mode, ...(mode === 'supabase' && { existing }) },
      }))
      await queries.invalidateQueries({ queryKey: ['default privileges', project] })
    }}>
      <SelectField label={texts.newTablesAndFunctions} value={mode} hint={modes[mode]}
        onChange={(e) => setMode(e.target.value === 'supabase' ? 'supabase' : 'closed')}>
        <option value="closed">{texts.closed}</option>
        <option value="supabase">{texts.asInSupabase}</option>
      </SelectField>
      {mode === 'supabase' && (
        <CheckField label={texts.alsoForWhatExistsAlready} checked={existing} onChange={(e) => setExisting(e.target.checked)}
          hint={texts.alsoWhereThePrivilegesWere} />
      )}
    </FormDialog>
  )
}
