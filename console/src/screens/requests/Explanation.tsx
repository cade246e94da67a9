import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
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
    <Dialog title="Request" open onClose={onClose} side wide>
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
                <h3>Statement, with its values cut</h3>
                <Code label="statement" text={e.statement} />
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
      <h3>Why</h3>
      <ol className={css.causes}>
        {causes.map((c) => (
          <li key={c.text + c.command}>
            <p>{c.text}</p>
            {c.command !== null && <Code label="command" text={c.command} />}
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
      ['Id', <Copyable value={r.uuid} label="id" />],
      ['Time', <Time at={r.at} />],
      ['Caller', r.endUserUuid === null ? callerOf(r)
        : <Link to={`/projects/${project}/users/${r.endUserUuid}` as string}>{r.endUserUuid}</Link>],
      ['Role in the database', e.role === null ? undefined : <code>{e.role}</code>],
      ['Duration', microseconds(r.duration)],
      ['Rows', r.rows === null ? undefined : r.rows.toLocaleString()],
      ['Bytes', r.bytes === null ? undefined : formatBytes(r.bytes)],
      ['Client', r.client ?? undefined],
      ['User agent', r.userAgent ?? undefined],
      ['Claims', Object.keys(e.claims).length === 0 ? undefined : <code>{JSON.stringify(e.claims)}</code>],
    ]} />
  )
}

function Access({ explained: e }: { explained: Explained }) {
  if (e.table === null) return null

  return (
    <section className={css.section}>
      <h3>Access to {e.table} now</h3>
      <Details entries={[
        ['Privileges', e.privileges.length === 0 ? 'none' : e.privileges.join(', ')],
        ['Row security', e.rowSecurity === null ? undefined : e.rowSecurity ? 'policies decide' : 'off: every row'],
      ]} />
      {e.policies.length > 0 && (
        <ul className={css.causes}>
          {e.policies.map((p) => (
            <li key={p.name}>
              <b>{p.name}</b> <Badge>{p.permissive ? 'permissive' : 'restrictive'}</Badge> {p.command} to {p.roles.join(', ')}
              {p.using !== null && <Code label="condition on existing rows" text={`using (${p.using})`} />}
              {p.withCheck !== null && <Code label="condition on written rows" text={`with check (${p.withCheck})`} />}
            </li>
          ))}
        </ul>
      )}
      {e.rowSecurity === true && e.policies.length === 0 && <p>No policy applies to this command and role, so no row is allowed.</p>}
    </section>
  )
}

function Similar({ request: r, onFilter }: { request: Request; onFilter: (patch: Partial<Filters>) => void }) {
  const endUser = r.endUserUuid
  const code = r.errorCode

  return (
    <Row>
      <Button onClick={() => onFilter({ route: r.route })}>Show this route</Button>
      {code !== null && <Button onClick={() => onFilter({ code })}>Show this failure</Button>}
      {endUser !== null && <Button onClick={() => onFilter({ user: endUser, userKind: '' })}>Show this user</Button>}
    </Row>
  )
}
