import { useQuery } from '@tanstack/react-query'
import { texts } from '#texts/realtime'
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
          <Card title={texts.channels} lead={texts.onTheServerThatAnswers(count(a.channels, 'channel'))}>
            {a.largestChannels.length === 0
              ? <Empty title={texts.noChannelIsOpen}>{texts.anApplicationJoinsOneBy}</Empty>
              : (
                <>
                  <Table label={texts.channels} rows={a.largestChannels} keyOf={(c) => `${c.isPrivate} ${c.name}`} columns={[
                    { title: texts.name, cell: (c) => c.name },
                    { title: texts.whoJoins, cell: (c) => c.isPrivate ? <Badge tone="success">{texts.byPolicy}</Badge> : <Badge>{texts.anybodyWithAKey}</Badge>, narrow: true },
                    { title: texts.sockets, align: 'right', cell: (c) => c.sockets.toLocaleString() },
                    { title: texts.presences, align: 'right', cell: (c) => c.presences.toLocaleString() },
                  ]} />
                  {a.channels > a.largestChannels.length && <p>{texts.theWithTheMostSockets(a.largestChannels.length)}</p>}
                </>
              )}
          </Card>
          <Card title={texts.sockets} lead={texts.socketsOfThisProject(count(a.sockets, 'socket'))}>
            {a.newestSockets.length > 0 && (
              <>
                <Table label={texts.sockets} rows={a.newestSockets} keyOf={(s) => `${s.openedAt} ${s.address}`} columns={[
                  { title: texts.client, cell: (s) => s.address },
                  { title: texts.channels, align: 'right', cell: (s) => s.channels.toLocaleString() },
                  { title: texts.openSince, cell: (s) => <Time at={s.openedAt} /> },
                ]} />
                {a.sockets > a.newestSockets.length && <p>{texts.theNewestCount(a.newestSockets.length)}</p>}
              </>
            )}
          </Card>
        </>
      )}
    </Loaded>
  )
}

const count = (n: number, noun: string) => `${n.toLocaleString()} ${noun}${n === 1 ? '' : 's'}`
