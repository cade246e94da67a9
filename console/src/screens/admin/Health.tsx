import { useQuery } from '@tanstack/react-query'
import { api, read, type Schemas } from '../../api/client'
import { Badge } from '../../components/Bits'
import { Button } from '../../components/Button'
import { Card } from '../../components/Page'
import { Loaded } from '../../components/States'
import { Table } from '../../components/Table'

type Status = Schemas['Part']['status']

const tones = { ok: 'success', degraded: 'warning', down: 'danger' } as const
const refreshed = 30_000 // ms

/** The state of the server's parts. */
export function Health() {
  const query = useQuery({
    queryKey: ['health'],
    refetchInterval: refreshed,
    queryFn: () => read(api.GET('/health/parts')),
  })

  return (
    <Card title="Health" lead="Monitoring uses /healthz and /readyz, which need no token."
      actions={<Button busy={query.isFetching} onClick={() => void query.refetch()}>Check now</Button>}>
      <Loaded query={query}>
        {({ content, metadata }) => (
          <>
            <p>In all: <StatusBadge status={metadata.status} /></p>
            <Table label="Parts" rows={content} keyOf={(p) => p.name} columns={[
              { title: 'Part', cell: (p) => p.name },
              { title: 'Status', cell: (p) => <StatusBadge status={p.status} /> },
              { title: 'Detail', cell: (p) => p.detail },
            ]} />
          </>
        )}
      </Loaded>
    </Card>
  )
}

function StatusBadge({ status }: { status: Status }) {
  return <Badge tone={tones[status]}>{status}</Badge>
}
