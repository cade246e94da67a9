import { useQuery } from '@tanstack/react-query'
import { api, read } from '../../api/client'
import { Loaded } from '../../components/States'
import { queries } from '../../queries'
import { SettingsForm } from '../../components/SettingsForm'
import { requestNames, type Spec } from '../../components/specs'

const specs: Spec[] = [
  { name: 'schemas', label: 'Exposed schemas', kind: 'list',
    hint: 'One a line. The first is the schema of requests that name none. Exposing grants nothing: roles need USAGE on the schema and privileges on its contents.' },
  { name: 'max_rows', label: 'Maximum rows of a response', kind: 'number', hint: 'Also of each embedded list. 0: no limit.' },
  { name: 'aggregates', label: 'Allow aggregates in select', kind: 'check',
    hint: 'An aggregate reads all rows that the filters find. Set timeouts too.' },
  { name: 'plan', label: 'Allow requests for the plan of a statement', kind: 'check',
    hint: 'A plan names hidden tables and policies.' },
  { name: 'tx_end', label: 'End of transactions', kind: 'choice', choices: [
    { value: 'commit', text: 'Commit' },
    { value: 'commit-allow-override', text: 'Commit, unless the request prefers tx=rollback' },
    { value: 'rollback', text: 'Roll back' },
    { value: 'rollback-allow-override', text: 'Roll back, unless the request prefers tx=commit' },
  ] },
  { name: 'anon_timeout_ms', label: 'Timeout for anon (ms)', kind: 'number', hint: '0: only the limit of 30 seconds.' },
  { name: 'authenticated_timeout_ms', label: 'Timeout for authenticated (ms)', kind: 'number',
    hint: '0: only the limit of 30 seconds.' },
  { name: 'service_role_timeout_ms', label: 'Timeout for service_role (ms)', kind: 'number',
    hint: '0: only the limit of 30 seconds.' },
]

export function RestSettings({ project }: { project: string }) {
  const query = useQuery({
    queryKey: ['rest settings', project],
    queryFn: () => read(api.GET('/projects/{projectUUID}/rest-settings', { params: { path: { projectUUID: project } } })),
  })

  return (
    <Loaded query={query}>
      {({ content }) => (
        <SettingsForm title="Rows API" needs="updateRestSettings" lead="Changes take effect within seconds." specs={specs}
          values={requestNames(content)} save={async (body) => {
            await read(api.PUT('/projects/{projectUUID}/rest-settings', {
              params: { path: { projectUUID: project } }, body,
            }))
            await queries.invalidateQueries({ queryKey: ['rest settings', project] })
          }} />
      )}
    </Loaded>
  )
}
