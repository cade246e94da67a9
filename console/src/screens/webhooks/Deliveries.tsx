import { useState } from 'react'
import { useInfiniteQuery, useQuery } from '@tanstack/react-query'
import { api, read, type Schemas } from '../../api/client'
import { Badge, Code, Copyable, Time } from '../../components/Bits'
import { Button } from '../../components/Button'
import { Details } from '../../components/Details'
import { Dialog, FormDialog } from '../../components/Dialog'
import { SelectField, TextField } from '../../components/Field'
import { FilterBar, useFilters } from '../../components/Filters'
import { Card, Row, Stack } from '../../components/Page'
import { Empty, FailureNote, Loaded } from '../../components/States'
import { Table } from '../../components/Table'
import { toast } from '../../components/Toast'
import { queries } from '../../queries'
import { eventTypes, pretty } from './events'
import css from './Webhooks.module.css'

type Delivery = Schemas['Delivery']

const refreshInterval = 5000 // ms
const statuses = { '': 'All', pending: 'Waiting', delivered: 'Delivered', dead: 'Given up' } as const
const tones = { pending: 'warning', delivered: 'success', dead: 'danger' } as const
const rowTypes = ['socle.row.inserted.v1', 'socle.row.updated.v1', 'socle.row.deleted.v1', 'socle.table.truncated.v1']

/** What was sent to an endpoint, and what it answered. */
export function Deliveries({ project, webhook }: { project: string; webhook: Schemas['Webhook'] }) {
  const [{ status, type, delivery }, setFilters] = useFilters('status', 'type', 'delivery')
  const [replays, setReplays] = useState(false)
  const path = { projectUUID: project, webhookUUID: webhook.uuid }
  const query = useInfiniteQuery({
    queryKey: ['webhooks', project, 'deliveries', webhook.uuid, status, type],
    queryFn: ({ pageParam }) => read(api.GET('/projects/{projectUUID}/webhooks/{webhookUUID}/deliveries', {
      params: { path, query: {
        ...(status in tones && { status: status as keyof typeof tones }),
        ...(type !== '' && { type }),
        ...(pageParam !== '' && { cursor: pageParam }),
      } },
    })),
    initialPageParam: '',
    getNextPageParam: (last) => last.metadata.next,
    refetchInterval: (q) => ((q.state.data?.pages.length ?? 0) <= 1 ? refreshInterval : false),
    placeholderData: (former) => former,
  })
  const types = [...new Set([...rowTypes, ...Object.keys(eventTypes), 'socle.webhook.test.v1', 'socle.webhook.gap.v1'])]
  const filtered = status !== '' || type !== ''

  return (
    <Card title="Deliveries" lead="Those that have ended are kept for a week."
      actions={<Button needs="replayWebhook" onClick={() => setReplays(true)}>Replay</Button>}>
      <FilterBar>
        <SelectField label="Result" value={status} onChange={(e) => setFilters({ status: e.target.value })}>
          {Object.entries(statuses).map(([value, text]) => <option key={value} value={value}>{text}</option>)}
        </SelectField>
        <SelectField label="Event" value={type} onChange={(e) => setFilters({ type: e.target.value })}>
          <option value="">All</option>
          {types.map((t) => <option key={t}>{t}</option>)}
        </SelectField>
      </FilterBar>
      <Loaded query={query}>
        {({ pages }) => {
          const rows = pages.flatMap((p) => p.content)
          if (rows.length === 0) {
            return (
              <Empty title={filtered ? 'No delivery matches' : 'No delivery yet'}
                action={filtered && <Button onClick={() => setFilters({ status: '', type: '' })}>Remove filters</Button>}>
                {!filtered && 'Send a test, or change a row of its tables.'}
              </Empty>
            )
          }

          return (
            <>
              <Table label="Deliveries" rows={rows} keyOf={(d) => d.uuid} onOpen={(d) => setFilters({ delivery: d.uuid })} columns={[
                { title: 'Result', cell: (d) => <Badge tone={tones[d.status]}>{statuses[d.status].toLowerCase()}</Badge> },
                { title: 'Event', cell: (d) => (
                  <button type="button" className={css.open} onClick={() => setFilters({ delivery: d.uuid })}>{d.type}</button>
                ) },
                { title: 'Attempts', cell: (d) => d.attempts, align: 'right', narrow: true },
                { title: 'Next attempt', cell: (d) => d.nextAt === null ? '' : <Time at={d.nextAt} />, narrow: true },
                { title: 'Created', cell: (d) => <Time at={d.createdAt} /> },
              ]} />
              {query.hasNextPage && (
                <Row><Button busy={query.isFetchingNextPage} onClick={() => void query.fetchNextPage()}>Load older deliveries</Button></Row>
              )}
            </>
          )
        }}
      </Loaded>
      {delivery !== '' && <OneDelivery path={{ ...path, deliveryUUID: delivery }} onClose={() => setFilters({ delivery: '' })} />}
      {replays && <Replay path={path} onClose={() => setReplays(false)} />}
    </Card>
  )
}

function OneDelivery({ path, onClose }: {
  path: { projectUUID: string; webhookUUID: string; deliveryUUID: string }
  onClose: () => void
}) {
  const [failure, setFailure] = useState<unknown>(null)
  const query = useQuery({
    queryKey: ['webhooks', path.projectUUID, 'delivery', path.deliveryUUID],
    refetchInterval: (q) => (q.state.data?.content.status === 'pending' ? refreshInterval : false),
    queryFn: () => read(api.GET('/projects/{projectUUID}/webhooks/{webhookUUID}/deliveries/{deliveryUUID}', { params: { path } })),
  })

  async function retry() {
    setFailure(null)
    try {
      await read(api.POST('/projects/{projectUUID}/webhooks/{webhookUUID}/deliveries/{deliveryUUID}/retry', { params: { path } }))
      toast('It is attempted again now.')
      await queries.invalidateQueries({ queryKey: ['webhooks', path.projectUUID] })
    } catch (error) {
      setFailure(error)
    }
  }

  return (
    <Dialog title={query.data?.content.type ?? 'Delivery'} open onClose={onClose} side wide>
      <Loaded query={query}>
        {({ content: d }) => (
          <Stack>
            <Details entries={stateOf(d)} />
            <Row><Button needs="retryWebhookDelivery" look="primary" onClick={() => void retry()}>Retry now</Button></Row>
            {failure !== null && <FailureNote error={failure} />}
            <h3>Attempts</h3>
            {d.log.length === 0 ? <p>None yet.</p> : (
              <Table label="Attempts" rows={[...d.log].reverse()} keyOf={(a) => a.at} columns={[
                { title: 'Answer', cell: (a) => a.error !== '' ? <Badge tone="danger">none</Badge>
                  : <Badge tone={a.status >= 200 && a.status < 300 ? 'success' : 'danger'}>{a.status}</Badge> },
                { title: 'Failure', cell: (a) => a.error },
                { title: 'Duration', cell: (a) => `${a.milliseconds.toLocaleString()} ms`, align: 'right' },
                { title: 'Time', cell: (a) => <Time at={a.at} /> },
              ]} />
            )}
            <h3>Body of the request</h3>
            <Code label="the body of the request" text={pretty(d.body)} />
            <h3>Last answer</h3>
            {d.reply === '' ? <p>{d.log.some((a) => a.status > 0) ? 'It had no body.' : 'None yet.'}</p> : <Code label="the answer" text={d.reply} />}
          </Stack>
        )}
      </Loaded>
    </Dialog>
  )
}

function stateOf(d: Delivery): Parameters<typeof Details>[0]['entries'] {
  return [
    ['Result', <Badge tone={tones[d.status]}>{statuses[d.status].toLowerCase()}</Badge>],
    ['Webhook-Id', <Copyable value={d.eventUuid} label="the id of the event" />],
    ['Created', <Time at={d.createdAt} />],
    ['Ended', d.endedAt === null ? undefined : <Time at={d.endedAt} />],
    ['Next attempt', d.nextAt === null ? undefined : <Time at={d.nextAt} />],
  ]
}

function Replay({ path, onClose }: { path: { projectUUID: string; webhookUUID: string }; onClose: () => void }) {
  const [from, setFrom] = useState('')
  const [to, setTo] = useState('')
  const [status, setStatus] = useState('dead')

  async function replay() {
    const { content } = await read(api.POST('/projects/{projectUUID}/webhooks/{webhookUUID}/replay', {
      params: { path },
      body: {
        from: new Date(from).toISOString(),
        ...(to !== '' && { to: new Date(to).toISOString() }),
        ...(status !== '' && { status: status as 'delivered' | 'dead' }),
      },
    }))
    toast(content.deliveries === 1 ? 'One delivery is made again.' : `${content.deliveries.toLocaleString()} deliveries are made again.`)
    await queries.invalidateQueries({ queryKey: ['webhooks', path.projectUUID] })
  }

  return (
    <FormDialog title="Replay deliveries" open action="Replay" onClose={onClose} onSubmit={replay}>
      <p>Deliveries that have ended are made again with the same ids. An endpoint that keeps ids ignores those that it has.</p>
      <TextField label="From" type="datetime-local" required autoFocus value={from} onChange={(e) => setFrom(e.target.value)} />
      <TextField label="To" type="datetime-local" value={to} hint="Empty: now." onChange={(e) => setTo(e.target.value)} />
      <SelectField label="Result" value={status} onChange={(e) => setStatus(e.target.value)}>
        <option value="dead">Given up</option>
        <option value="delivered">Delivered</option>
        <option value="">Both</option>
      </SelectField>
    </FormDialog>
  )
}
