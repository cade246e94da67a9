import { useQuery } from '@tanstack/react-query'
import { texts } from '#texts/settings'
import { api, read } from '../../api/client'
import { Loaded } from '../../components/States'
import { queries } from '../../queries'
import { SettingsForm } from '../../components/SettingsForm'
import { requestNames, type Spec } from '../../components/specs'

const specs: Spec[] = [
  { name: 'schemas', label: texts.exposedSchemas, kind: 'list',
    hint: texts.oneALineTheFirst },
  { name: 'max_rows', label: texts.maximumRowsOfAResponse, kind: 'number', hint: texts.alsoOfEachEmbeddedList },
  { name: 'aggregates', label: texts.allowAggregatesInSelect, kind: 'check',
    hint: texts.anAggregateReadsAllRows },
  { name: 'plan', label: texts.allowRequestsForThePlan, kind: 'check',
    hint: texts.aPlanNamesHiddenTables },
  { name: 'tx_end', label: texts.endOfTransactions, kind: 'choice', choices: [
    { value: 'commit', text: texts.commit },
    { value: 'commit-allow-override', text: texts.commitUnlessTheRequestPrefers },
    { value: 'rollback', text: texts.rollBack },
    { value: 'rollback-allow-override', text: texts.rollBackUnlessTheRequest },
  ] },
  { name: 'anon_timeout_ms', label: texts.timeoutForAnonMs, kind: 'number', hint: texts.zeroOnlyTheLimitOf },
  { name: 'authenticated_timeout_ms', label: texts.timeoutForAuthenticatedMs, kind: 'number',
    hint: texts.zeroOnlyTheLimitOf },
  { name: 'service_role_timeout_ms', label: texts.timeoutForServiceRoleMs, kind: 'number',
    hint: texts.zeroOnlyTheLimitOf },
]

export function RestSettings({ project }: { project: string }) {
  const query = useQuery({
    queryKey: ['rest settings', project],
    queryFn: () => read(api.GET('/projects/{projectUUID}/rest-settings', { params: { path: { projectUUID: project } } })),
  })

  return (
    <Loaded query={query}>
      {({ content }) => (
        <SettingsForm title={texts.rowsAPI} needs="updateRestSettings" lead={texts.changesTakeEffectWithinSeconds} specs={specs}
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
