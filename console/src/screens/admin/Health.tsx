import { useQuery } from '@tanstack/react-query'
import { texts } from '#texts/admin'
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
    <Card title={texts.health} lead={texts.monitoringUsesHealthzAndReadyz}
      actions={<Button busy={query.isFetching} onClick={() => void query.refetch()}>{texts.checkNow}</Button>}>
      <Loaded query={query}>
        {({ content, metadata }) => (
          <>
            <p>{texts.inAllStatusBadge(<StatusBadge status={metadata.status} />)}</p>
            <Table label={texts.parts} rows={content} keyOf={(p) => p.name} columns={[
              { title: texts.part, cell: (p) => p.name },
              { title: texts.status, cell: (p) => <StatusBadge status={p.status} /> },
              { title: texts.detail, cell: (p) => p.detail },
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
