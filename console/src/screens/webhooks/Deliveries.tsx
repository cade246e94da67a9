import { useState } from 'react'
import { useInfiniteQuery, useQuery } from '@tanstack/react-query'
import { texts } from '#texts/webhooks'
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
const statuses = { '': texts.all, pending: texts.waiting, delivered: texts.delivered, dead: texts.givenUp } as const
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
    <Card title={texts.deliveries} lead={texts.thoseThatHaveEndedAre}
      actions={<Button needs="replayWebhook" onClick={() => setReplays(true)}>{texts.replay}</Button>}>
      <FilterBar>
        <SelectField label={texts.result} value={status} onChange={(e) => setFilters({ status: e.target.value })}>
          {Object.entries(statuses).map(([value, text]) => <option key={value} value={value}>{text}</option>)}
        </SelectField>
        <SelectField label={texts.event} value={type} onChange={(e) => setFilters({ type: e.target.value })}>
          <option value="">{texts.all}</option>
          {types.map((t) => <option key={t}>{t}</option>)}
        </SelectField>
      </FilterBar>
      <Loaded query={query}>
        {({ pages }) => {
          const rows = pages.flatMap((p) => p.content)
          if (rows.length === 0) {
            return (
              <Empty title={filtered ? texts.noDeliveryMatches : texts.noDeliveryYet}
                action={filtered && <Button onClick={() => setFilters({ status: '', type: '' })}>{texts.removeFilters}</Button>}>
                {!filtered && texts.sendATestOrChange}
              </Empty>
            )
          }

          return (
            <>
              <Table label={texts.deliveries} rows={rows} keyOf={(d) => d.uuid} onOpen={(d) => setFilters({ delivery: d.uuid })} columns={[
                { title: texts.result, cell: (d) => <Badge tone={tones[d.status]}>{statuses[d.status].toLowerCase()}</Badge> },
                { title: texts.event, cell: (d) => (
                  <button type="button" className={css.open} onClick={() => setFilters({ delivery: d.uuid })}>{d.type}</button>
                ) },
                { title: texts.attempts, cell: (d) => d.attempts, align: 'right', narrow: true },
                { title: texts.nextAttempt, cell: (d) => d.nextAt === null ? '' : <Time at={d.nextAt} />, narrow: true },
                { title: texts.created, cell: (d) => <Time at={d.createdAt} /> },
              ]} />
              {query.hasNextPage && (
                <Row><Button busy={query.isFetchingNextPage} onClick={() => void query.fetchNextPage()}>{texts.loadOlderDeliveries}</Button></Row>
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
      toast(texts.itIsAttemptedAgainNow)
      await queries.invalidateQueries({ queryKey: ['webhooks', path.projectUUID] })
    } catch (error) {
      setFailure(error)
    }
  }

  return (
    <Dialog title={query.data?.content.type ?? texts.delivery} open onClose={onClose} side wide>
      <Loaded query={query}>
        {({ content: d }) => (
          <Stack>
            <Details entries={stateOf(d)} />
            <Row><Button needs="retryWebhookDelivery" look="primary" onClick={() => void retry()}>{texts.retryNow}</Button></Row>
            {failure !== null && <FailureNote error={failure} />}
            <h3>{texts.attempts}</h3>
            {d.log.length === 0 ? <p>{texts.noneYet}</p> : (
              <Table label={texts.attempts} rows={[...d.log].reverse()} keyOf={(a) => a.at} columns={[
                { title: texts.answer, cell: (a) => a.error !== '' ? <Badge tone="danger">{texts.none}</Badge>
                  : <Badge tone={a.status >= 200 && a.status < 300 ? 'success' : 'danger'}>{a.status}</Badge> },
                { title: texts.failure, cell: (a) => a.error },
                { title: texts.duration, cell: (a) => texts.millisecondsMs(a.milliseconds.toLocaleString()), align: 'right' },
                { title: texts.time, cell: (a) => <Time at={a.at} /> },
              ]} />
            )}
            <h3>{texts.bodyOfTheRequest}</h3>
            <Code label={texts.theBodyOfTheRequest} text={pretty(d.body)} />
            <h3>{texts.lastAnswer}</h3>
            {d.reply === '' ? <p>{d.log.some((a) => a.status > 0) ? texts.itHadNoBody : texts.noneYet}</p> : <Code label={texts.theAnswer} text={d.reply} />}
          </Stack>
        )}
      </Loaded>
    </Dialog>
  )
}

function stateOf(d: Delivery): Parameters<typeof Details>[0]['entries'] {
  return [
    [texts.result, <Badge tone={tones[d.status]}>{statuses[d.status].toLowerCase()}</Badge>],
    ['Webhook-Id', <Copyable value={d.eventUuid} label={texts.theIdOfTheEvent} />],
    [texts.created, <Time at={d.createdAt} />],
    [texts.ended, d.endedAt === null ? undefined : <Time at={d.endedAt} />],
    [texts.nextAttempt, d.nextAt === null ? undefined : <Time at={d.nextAt} />],
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
    toast(content.deliveries === 1 ? texts.oneDeliveryIsMadeAgain : texts.deliveriesAreMadeAgain(content.deliveries.toLocaleString()))
    await queries.invalidateQueries({ queryKey: ['webhooks', path.projectUUID] })
  }

  return (
    <FormDialog title={texts.replayDeliveries} open action={texts.replay} onClose={onClose} onSubmit={replay}>
      <p>{texts.deliveriesThatHaveEndedAre}</p>
      <TextField label={texts.from} type="datetime-local" required autoFocus value={from} onChange={(e) => setFrom(e.target.value)} />
      <TextField label={texts.to} type="datetime-local" value={to} hint={texts.emptyNow} onChange={(e) => setTo(e.target.value)} />
      <SelectField label={texts.result} value={status} onChange={(e) => setStatus(e.target.value)}>
        <option value="dead">{texts.givenUp}</option>
        <option value="delivered">{texts.delivered}</option>
        <option value="">{texts.both}</option>
      </SelectField>
    </FormDialog>
  )
}
