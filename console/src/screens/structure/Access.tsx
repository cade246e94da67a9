import { useQuery } from '@tanstack/react-query'
import { texts } from '#texts/structure'
import { api, read } from '../../api/client'
import { Badge } from '../../components/Bits'
import { Row } from '../../components/Page'
import { SeeAs } from '../../components/SeeAs'
import { Loaded } from '../../components/States'
import { useURLState } from '../../url'
import { commands, verdictOf, type Command, type Rules, type Verdict } from './callers'
import { ReadAs } from './ReadAs'
import { onTable, type TableRef } from './table'
import css from './Structure.module.css'
import look from './Access.module.css'

interface Caller {
  name: string
  role: string
  text: string
}

const roles: Caller[] = [
  { name: 'anon', role: 'anon', text: texts.callersWithoutAnAccount },
  { name: 'authenticated', role: 'authenticated', text: texts.signedInUsers },
  { name: 'service_role', role: 'service_role', text: texts.yourOwnServers },
]
const words: Record<Verdict['kind'], string> = { all: texts.allRows, some: texts.someRows, none: texts.noRow, refused: 'refused' }

/** Who may read, insert, change and delete rows, and why; and what a chosen caller reads. */
export function Access({ table, rowLevelSecurity }: { table: TableRef; rowLevelSecurity: boolean }) {
  const [as, setAs] = useURLState('as', 'anon')
  const query = useQuery({
    queryKey: ['tables', table.project, table.uuid, 'access'],
    queryFn: async () => {
      const [grants, policies] = await Promise.all([
        read(api.GET('/tables/{tableUUID}/grants', { params: onTable(table) })),
        read(api.GET('/tables/{tableUUID}/policies', { params: onTable(table) })),
      ])
      return { grants: grants.content, policies: policies.content }
    },
  })
  const user = useUser(table.project, as)

  return (
    <>
      <p>{texts.aGrantLetsARole}</p>
      <Loaded query={query}>
        {(rules) => (
          <Matrix callers={user === undefined ? roles : [...roles, user]} rules={{ ...rules, rowSecurity: rowLevelSecurity }} />
        )}
      </Loaded>
      <Row>
        <h2>{texts.tryIt}</h2>
        <SeeAs project={table.project} value={as === 'service_role' ? '' : as} onChange={(next) => setAs(next || 'service_role')} />
      </Row>
      <ReadAs table={table} as={as} />
    </>
  )
}

/** Returns the chosen end user as a caller. */
function useUser(project: string, as: string): Caller | undefined {
  const uuid = as.startsWith('user:') ? as.slice(5) : ''
  const { data } = useQuery({
    queryKey: ['endusers', project, uuid],
    enabled: uuid !== '',
    queryFn: () => read(api.GET('/projects/{projectUUID}/end-users/{endUserUUID}', {
      params: { path: { projectUUID: project, endUserUUID: uuid } },
    })),
  })
  if (data === undefined) return undefined

  const { email, phone, role } = data.content
  return { name: email || phone || uuid, role, text: texts.aUserWithTheRole(role) }
}

function Matrix({ callers, rules }: { callers: Caller[]; rules: Rules }) {
  return (
    <div className={`${css.matrix} ${look.matrix}`} tabIndex={0} role="region" aria-label={texts.accessByCaller}>
      <table>
        <thead>
          <tr>
            <th scope="col">{texts.caller}</th>
            {commands.map((c) => <th key={c} scope="col">{c}</th>)}
          </tr>
        </thead>
        <tbody>
          {callers.map((caller) => (
            <tr key={caller.name}>
              <th scope="row">
                {caller.name}
                <p className={css.quiet}>{caller.text}</p>
              </th>
              {commands.map((c) => <Cell key={c} caller={caller} command={c} verdict={verdictOf(caller.role, c, rules)} />)}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}

function Cell({ caller, command, verdict }: { caller: Caller; command: Command; verdict: Verdict }) {
  return (
    <td>
      <Badge tone={toneOf(caller, command, verdict)}>{words[verdict.kind]}</Badge>
      <p className={css.quiet}>{verdict.reason}</p>
      {verdict.conditions.map((c) => (
        <p key={c.policy} className={css.expression}>
          {c.restrictive ? texts.and : ''}{c.policy}: {c.text}
        </p>
      ))}
    </td>
  )
}

function toneOf(caller: Caller, command: Command, { kind }: Verdict): 'neutral' | 'success' | 'danger' {
  if (kind === 'none' || kind === 'refused') return 'neutral'
  return kind === 'all' && caller.role === 'anon' && command !== 'select' ? 'danger' : 'success'
}
