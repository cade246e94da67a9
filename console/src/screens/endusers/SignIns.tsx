import type { ReactNode } from 'react'
import { useQuery } from '@tanstack/react-query'
import { api, inProject, read } from '../../api/client'
import { Badge, Time } from '../../components/Bits'
import { Card } from '../../components/Page'
import { useRefusal } from '../../components/rights'
import { Empty, Loaded } from '../../components/States'
import { Table, type Column } from '../../components/Table'

type Cells = (string | null)[]

/** How and where the user signs in. The platform API has none of it, so it comes from the database. */
export function SignIns({ project, user }: { project: string; user: string }) {
  const props = { project, user }

  return (
    <>
      <Records {...props} title="Identities" lead="Accounts by which this user signs in." empty="No identity"
        next="The user has no address, number or provider." query={`
          select provider, provider_id, email, last_sign_in_at::text
          from auth.identities where user_id = $1::uuid order by created_at`} columns={[
          { title: 'Provider', cell: (r) => r[0] },
          { title: 'Id with the provider', cell: (r) => <code>{r[1]}</code>, narrow: true },
          { title: 'Address', cell: (r) => r[2] },
          { title: 'Last sign-in', cell: (r) => <Time at={r[3]} /> },
        ]} />
      <Records {...props} title="Second factors and passkeys" lead="What the user shows besides or instead of a password." empty="No factor"
        next="Your application offers them; Settings decides which." query={`
          select f.factor_type, f.friendly_name, f.status, f.created_at::text, f.last_challenged_at::text
          from auth.mfa_factors f where f.user_id = $1::uuid
          union all
          select 'passkey', c.friendly_name, 'verified', c.created_at::text, c.last_used_at::text
          from auth.webauthn_credentials c where c.user_id = $1::uuid and c.factor_id is null
          order by 4`} columns={[
          { title: 'Kind', cell: (r) => r[0] },
          { title: 'Name', cell: (r) => r[1] },
          { title: 'State', cell: (r) => <Badge tone={r[2] === 'verified' ? 'success' : 'warning'}>{r[2]}</Badge> },
          { title: 'Added', cell: (r) => <Time at={r[3]} />, narrow: true },
          { title: 'Last asked', cell: (r) => <Time at={r[4]} />, narrow: true },
        ]} />
      <Records {...props} title="Sessions" lead="Where this user is signed in, the latest first. End sessions, above, ends them all." empty="No session"
        next="The user is signed in nowhere." query={`
          select user_agent, host(ip), aal, created_at::text, coalesce(refreshed_at, created_at)::text, id::text
          from auth.sessions where user_id = $1::uuid
          order by coalesce(refreshed_at, created_at) desc limit 50`} columns={[
          { title: 'Browser or program', cell: (r) => r[0] ?? 'unknown' },
          { title: 'Network address', cell: (r) => <code>{r[1]}</code>, narrow: true },
          { title: 'Assurance', cell: (r) => <Badge tone={r[2] === 'aal1' ? 'neutral' : 'success'}>{r[2]}</Badge>, narrow: true },
          { title: 'Signed in', cell: (r) => <Time at={r[3]} />, narrow: true },
          { title: 'Last used', cell: (r) => <Time at={r[4]} /> },
        ]} />
    </>
  )
}

function Records({ project, user, title, lead, empty, next, query: text, columns }: {
  project: string
  user: string
  title: string
  lead: string
  empty: string
  next: ReactNode
  query: string
  columns: Column<Cells>[]
}) {
  const refusal = useRefusal('runSQL')
  const query = useQuery({
    queryKey: ['end-users', project, title, user],
    enabled: refusal === undefined,
    queryFn: () => read(api.POST('/sql', {
      params: { header: inProject(project) },
      body: { query: text.replaceAll(/\n +/g, '\n').trim(), parameters: [user], read_only: true },
    })),
  })

  return (
    <Card title={title} lead={refusal ?? lead}>
      {refusal === undefined && (
        <Loaded query={query} rows={1}>
          {({ content }) => {
            const rows = (content.results[0]?.rows ?? []) as Cells[]
            if (rows.length === 0) return <Empty title={empty}>{next}</Empty>

            return <Table label={title} rows={rows} keyOf={(r) => JSON.stringify(r)} columns={columns} />
          }}
        </Loaded>
      )}
    </Card>
  )
}
