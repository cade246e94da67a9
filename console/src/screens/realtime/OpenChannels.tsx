import { useQuery } from '@tanstack/react-query'
import { api, read } from '../../api/client'
import { Badge, Time } from '../../components/Bits'
import { Card } from '../../components/Page'
import { Empty, Loaded } from '../../components/States'
import { Table } from '../../components/Table'

const refreshInterval = 3000 // ms

/** The sockets and channels that are open now. */
export function OpenChannels({ project }: { project: string }) {
  const query = useQuery({
    queryKey: ['realtime activity', project],
    refetchInterval: refreshInterval,
    queryFn: () => read(api.GET('/projects/{projectUUID}/realtime-activity', { params: { path: { projectUUID: project } } })),
  })

  return (
    <Loaded query={query}>
      {({ content: a }) => (
        <>
          <Card title="Channels" lead={`${count(a.channels, 'channel')} on the server that answers. Presences are those of all servers.`}>
            {a.largestChannels.length === 0
              ? <Empty title="No channel is open">An application joins one by supabase.channel(name).subscribe().</Empty>
              : (
                <>
                  <Table label="Channels" rows={a.largestChannels} keyOf={(c) => `${c.isPrivate} ${c.name}`} columns={[
                    { title: 'Name', cell: (c) => c.name },
                    { title: 'Who joins', cell: (c) => c.isPrivate ? <Badge tone="success">by policy</Badge> : <Badge>anybody with a key</Badge>, narrow: true },
                    { title: 'Sockets', align: 'right', cell: (c) => c.sockets.toLocaleString() },
                    { title: 'Presences', align: 'right', cell: (c) => c.presences.toLocaleString() },
                  ]} />
                  {a.channels > a.largestChannels.length && <p>The {a.largestChannels.length} with the most sockets.</p>}
                </>
              )}
          </Card>
          <Card title="Sockets" lead={`${count(a.sockets, 'socket')} of this project.`}>
            {a.newestSockets.length > 0 && (
              <>
                <Table label="Sockets" rows={a.newestSockets} keyOf={(s) => `${s.openedAt} ${s.address}`} columns={[
                  { title: 'Client', cell: (s) => s.address },
                  { title: 'Channels', align: 'right', cell: (s) => s.channels.toLocaleString() },
                  { title: 'Open since', cell: (s) => <Time at={s.openedAt} /> },
                ]} />
                {a.sockets > a.newestSockets.length && <p>The newest {a.newestSockets.length}.</p>}
              </>
            )}
          </Card>
        </>
      )}
    </Loaded>
  )
}

const count = (n: number, noun: string) => `${n.toLocaleString()} ${noun}${n === 1 ? '' : 's'}`
