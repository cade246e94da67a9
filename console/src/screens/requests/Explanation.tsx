import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { texts } from '#texts/requests'
import { api, read, type Schemas } from '../../api/client'
import { Badge, Code, Copyable, formatBytes, Time } from '../../components/Bits'
import { Button } from '../../components/Button'
import { Details } from '../../components/Details'
import { Dialog } from '../../components/Dialog'
import { Row, Stack } from '../../components/Page'
import { Loaded } from '../../components/States'
import { callerOf, microseconds, toneOf, type Filters, type Request } from './request'
import css from './Requests.module.css'

type Explained = Schemas['Explanation']

/** One request: why it answered as it did, and what mends it. */
export function Explanation({ project, uuid, onClose, onFilter }: {
  project: string
  uuid: string
  onClose: () => void
  onFilter: (patch: Partial<Filters>) => void
}) {
  const query = useQuery({
    queryKey: ['requests', project, 'explanation', uuid],
    queryFn: () => read(api.GET('/projects/{projectUUID}/requests/{requestUUID}/explanation', {
      params: { path: { projectUUID: project, requestUUID: uuid } },
    })),
  })

  return (
    <Dialog title={texts.request} open onClose={onClose} side wide>
      <Loaded query={query}>
        {({ content: e }) => (
          <Stack>
            <p className={css.line}>
              <Badge tone={toneOf(e.request.status)}>{e.request.status}</Badge> <b>{e.request.method}</b> {e.request.route}
              {e.request.query !== null && <span className={css.query}>?{e.request.query}</span>}
            </p>
            {e.request.errorCode !== null && (
              <p className={css.failure}><code>{e.request.errorCode}</code> {e.request.errorMessage}</p>
            )}
            <Causes causes={e.causes} />
            <Facts project={project} explained={e} />
            <Access explained={e} />
            {e.statement !== null && (
              <section className={css.section}>
                <h3>{texts.statementWithItsValuesCut}</h3>
                <Code label={texts.statement} text={e.statement} />
              </section>
            )}
            <Similar request={e.request} onFilter={onFilter} />
          </Stack>
        )}
      </Loaded>
    </Dialog>
  )
}

function Causes({ causes }: { causes: Explained['causes'] }) {
  if (causes.length === 0) return null

  return (
    <section className={css.section}>
      <h3>{texts.why}</h3>
      <ol className={css.causes}>
        {causes.map((c) => (
          <li key={c.text + c.command}>
            <p>{c.text}</p>
            {c.command !== null && <Code label={texts.command} text={c.command} />}
          </li>
        ))}
      </ol>
    </section>
  )
}

function Facts({ project, explained: e }: { project: string; explained: Explained }) {
  const r = e.request

  return (
    <Details entries={[
      [texts.id, <Copyable value={r.uuid} label={texts.id2} />],
      [texts.time, <Time at={r.at} />],
      [texts.caller, r.endUserUuid === null ? callerOf(r)
        : <Link to={`/projects/${project}/users/${r.endUserUuid}` as string}>{r.endUserUuid}</Link>],
      [texts.roleInTheDatabase, e.role === null ? undefined : <code>{e.role}</code>],
      [texts.duration, microseconds(r.duration)],
      [texts.rows, r.rows === null ? undefined : r.rows.toLocaleString()],
      [texts.bytes, r.bytes === null ? undefined : formatBytes(r.bytes)],
      [texts.client, r.client ?? undefined],
      [texts.userAgent, r.userAgent ?? undefined],
      [texts.claims, Object.keys(e.claims).length === 0 ? undefined : <code>{JSON.stringify(e.claims)}</code>],
    ]} />
  )
}

function Access({ explained: e }: { explained: Explained }) {
  if (e.table === null) return null

  return (
    <section className={css.section}>
      <h3>{texts.accessToTableNow(e.table)}</h3>
      <Details entries={[
        [texts.privileges, e.privileges.length === 0 ? 'none' : e.privileges.join(', ')],
        [texts.rowSecurity, e.rowSecurity === null ? undefined : e.rowSecurity ? texts.policiesDecide : texts.offEveryRow],
      ]} />
      {e.policies.length > 0 && (
        <ul className={css.causes}>
          {e.policies.map((p) => (
            <li key={p.name}>
              {texts.nameBadgeCommandToRoles(<b>{p.name}</b>, <Badge>{p.permissive ? texts.permissive : texts.restrictive}</Badge>, p.command, p.roles.join(', '))}
              {p.using !== null && <Code label={texts.conditionOnExistingRows} text={`using (${p.using})`} />}
              {p.withCheck !== null && <Code label={texts.conditionOnWrittenRows} text={`with check (${p.withCheck})`} />}
            </li>
          ))}
        </ul>
      )}
      {e.rowSecurity === true && e.policies.length === 0 && <p>{texts.noPolicyAppliesToThis}</p>}
    </section>
  )
}

function Similar({ request: r, onFilter }: { request: Request; onFilter: (patch: Partial<Filters>) => void }) {
  const endUser = r.endUserUuid
  const code = r.errorCode

  return (
    <Row>
      <Button onClick={() => onFilter({ route: r.route })}>{texts.showThisRoute}</Button>
      {code !== null && <Button onClick={() => onFilter({ code })}>{texts.showThisFailure}</Button>}
      {endUser !== null && <Button onClick={() => onFilter({ user: endUser, userKind: '' })}>{texts.showThisUser}</Button>}
    </Row>
  )
}
