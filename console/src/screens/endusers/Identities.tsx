import { useQuery } from '@tanstack/react-query'
import { api, inProject, read } from '../../api/client'
import { Time } from '../../components/Bits'
import { Card } from '../../components/Page'
import { Empty, Loaded } from '../../components/States'
import { Table } from '../../components/Table'

/** The ways by which the user signs in. The platform API has none, so they come from the database. */
export function Identities({ project, user }: { project: string; user: string }) {
  const query = useQuery({
    queryKey: ['end-users', project, 'identities', user],
    queryFn: () => read(api.POST('/sql', {
      params: { header: inProject(project) },
      body: {
        query: 'select provider, provider_id, email, last_sign_in_at::text, created_at::text\n'
          + 'from auth.identities where user_id = $1::uuid order by created_at',
        parameters: [user],
        read_only: true,
      },
    })),
  })

  return (
    <Card title="Identities" lead="Accounts by which this user signs in.">
      <Loaded query={query} rows={1}>
        {({ content }) => {
          const rows = (content.results[0]?.rows ?? []) as (string | null)[][]
          if (rows.length === 0) return <Empty title="No identity">The user has no address, number or provider.</Empty>

          return (
            <Table label="Identities" rows={rows} keyOf={(r) => `${r[0]} ${r[1]}`} columns={[
              { title: 'Provider', cell: (r) => r[0] },
              { title: 'Id with the provider', cell: (r) => <code>{r[1]}</code>, narrow: true },
              { title: 'Address', cell: (r) => r[2] },
              { title: 'Last sign-in', cell: (r) => <Time at={r[3]} /> },
            ]} />
          )
        }}
      </Loaded>
    </Card>
  )
}
