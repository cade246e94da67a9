import { useState } from 'react'
import { Link, useNavigate } from '@tanstack/react-router'
import { useQuery } from '@tanstack/react-query'
import { texts } from '#texts/webhooks'
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
  const create = <Button needs="createWebhook" look="primary" onClick={() => setCreates(true)}>{texts.createWebhook}</Button>
  const address = (w: Webhook) => `/projects/${project}/webhooks/${w.uuid}`

  return (
    <Page title={texts.webhooks} lead={texts.yourServicesAreToldOf} actions={create}>
      <Loaded query={query}>
        {({ content, metadata }) => content.length === 0 ? (
          <Empty title={texts.noWebhookYet} action={create}>{texts.nameAnEndpointOfYours}</Empty>
        ) : (
          <>
            <Table label={texts.webhooks} rows={content} keyOf={(w) => w.uuid} onOpen={(w) => void navigate({ to: address(w) })} columns={[
              { title: texts.name, cell: (w) => <Link to={address(w) as string}>{w.name}</Link> },
              { title: texts.endpoint, cell: (w) => <code className={css.endpoint}>{w.endpoint}</code>, narrow: true },
              { title: texts.hearsOf, cell: hearsOf, narrow: true },
              { title: texts.state, cell: (w) => <WebhookState webhook={w} /> },
              { title: texts.waiting, cell: (w) => w.pending.toLocaleString(), align: 'right', narrow: true },
            ]} />
            <Pager page={metadata.page} pages={metadata.totalPages} total={metadata.total} onPage={(n) => setPage(String(n))} />
          </>
        )}
      </Loaded>
      {creates && (
        <WebhookForm project={project} onClose={() => setCreates(false)} onSaved={(webhook, secret = '') => setCreated({ webhook, secret })} />
      )}
      {created && (
        <ShownOnce title={texts.webhookName(created.webhook.name)} values={[{ label: texts.signingSecret, value: created.secret }]}
          onClose={() => {
            setCreated(undefined)
            void navigate({ to: address(created.webhook) })
          }}>
          <p>{texts.yourEndpointVerifiesTheSignature}</p>
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

  return all.length <= 3 ? all.join(', ') : texts.allAndCountMore(all.slice(0, 2).join(', '), all.length - 2)
}

const reasons = { '': 'paused', member: 'paused', failures: texts.pausedAfterFailures, restore: texts.pausedByARestore }

/** Whether a webhook delivers. */
export function WebhookState({ webhook: w }: { webhook: Webhook }) {
  if (w.paused) return <Badge tone={w.pauseReason === 'failures' ? 'danger' : 'warning'}>{reasons[w.pauseReason]}</Badge>
  if (w.failingSince !== null) return <><Badge tone="danger">{texts.failing}</Badge> <Time at={w.failingSince} /></>

  return <Badge tone="success">{texts.active}</Badge>
}
