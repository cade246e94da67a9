import { useState } from 'react'
import { Link, useNavigate } from '@tanstack/react-router'
import { useQuery } from '@tanstack/react-query'
import { api, read, type Schemas } from '../../api/client'
import { Badge, Time } from '../../components/Bits'
import { Button } from '../../components/Button'
import { useProject } from '../../components/Filters'
import { Page } from '../../components/Page'
import { ShownOnce } from '../../components/ShownOnce'
import { Empty, Loaded } from '../../components/States'
import { Pager, Table } from '../../components/Table'
import { useURLState } from '../../url'
import { WebhookForm } from './WebhookForm'
import css from './Webhooks.module.css'

type Webhook = Schemas['Webhook']

/** Endpoints that are told of events. */
export function Webhooks() {
  const project = useProject()
  const navigate = useNavigate()
  const [page, setPage] = useURLState('page', '1')
  const [creates, setCreates] = useState(false)
  const [created, setCreated] = useState<{ webhook: Webhook; secret: string }>()
  const query = useQuery({
    queryKey: ['webhooks', project, page],
    queryFn: () => read(api.GET('/projects/{projectUUID}/webhooks', {
      params: { path: { projectUUID: project }, query: { page: Number(page), sort: 'name' } },
    })),
  })
  const create = <Button needs="createWebhook" look="primary" onClick={() => setCreates(true)}>Create webhook</Button>
  const address = (w: Webhook) => `/projects/${project}/webhooks/${w.uuid}`

  return (
    <Page title="Webhooks" lead="Your services are told of changed rows and other events, again and again until they answer." actions={create}>
      <Loaded query={query}>
        {({ content, metadata }) => content.length === 0 ? (
          <Empty title="No webhook yet" action={create}>Name an endpoint of yours, and the tables or events that it should hear of.</Empty>
        ) : (
          <>
            <Table label="Webhooks" rows={content} keyOf={(w) => w.uuid} onOpen={(w) => void navigate({ to: address(w) })} columns={[
              { title: 'Name', cell: (w) => <Link to={address(w) as string}>{w.name}</Link> },
              { title: 'Endpoint', cell: (w) => <code className={css.endpoint}>{w.endpoint}</code>, narrow: true },
              { title: 'Hears of', cell: hearsOf, narrow: true },
              { title: 'State', cell: (w) => <WebhookState webhook={w} /> },
              { title: 'Waiting', cell: (w) => w.pending.toLocaleString(), align: 'right', narrow: true },
            ]} />
            <Pager page={metadata.page} pages={metadata.totalPages} total={metadata.total} onPage={(n) => setPage(String(n))} />
          </>
        )}
      </Loaded>
      {creates && (
        <WebhookForm project={project} onClose={() => setCreates(false)} onSaved={(webhook, secret = '') => setCreated({ webhook, secret })} />
      )}
      {created && (
        <ShownOnce title={`Webhook ${created.webhook.name}`} values={[{ label: 'Signing secret', value: created.secret }]}
          onClose={() => {
            setCreated(undefined)
            void navigate({ to: address(created.webhook) })
          }}>
          <p>Your endpoint verifies the signature with it, by a library of Standard Webhooks.</p>
        </ShownOnce>
      )}
    </Page>
  )
}

/** Says in words what a webhook hears of. */
export function hearsOf(w: Webhook): string {
  const tables = w.tables.map((t) => (t.schema === 'public' ? t.table : `${t.schema}.${t.table}`))
  const events = w.events.map((e) => e.replace(/^socle\./, '').replace(/\.v\d+$/, ''))
  const all = [...tables, ...events]

  return all.length <= 3 ? all.join(', ') : `${all.slice(0, 2).join(', ')} and ${all.length - 2} more`
}

const reasons = { '': 'paused', member: 'paused', failures: 'paused after failures', restore: 'paused by a restore' }

/** Whether a webhook delivers. */
export function WebhookState({ webhook: w }: { webhook: Webhook }) {
  if (w.paused) return <Badge tone={w.pauseReason === 'failures' ? 'danger' : 'warning'}>{reasons[w.pauseReason]}</Badge>
  if (w.failingSince !== null) return <><Badge tone="danger">failing</Badge> <Time at={w.failingSince} /></>

  return <Badge tone="success">active</Badge>
}
