import { useState } from 'react'
import { useNavigate, useParams } from '@tanstack/react-router'
import { useQuery } from '@tanstack/react-query'
import { api, read, type Schemas } from '../../api/client'
import { Copyable, Time } from '../../components/Bits'
import { Button, ButtonLink } from '../../components/Button'
import { Details } from '../../components/Details'
import { Confirm } from '../../components/Dialog'
import { Card, Page, Row } from '../../components/Page'
import { ShownOnce } from '../../components/ShownOnce'
import { Loaded } from '../../components/States'
import { toast } from '../../components/Toast'
import { queries } from '../../queries'
import { Deliveries } from './Deliveries'
import { WebhookForm } from './WebhookForm'
import { WebhookState } from './Webhooks'
import css from './Webhooks.module.css'

/** One webhook, with its deliveries. */
export function Webhook() {
  const { project, webhook } = useParams({ strict: false }) as { project: string; webhook: string }
  const query = useQuery({
    queryKey: ['webhooks', project, 'one', webhook],
    refetchInterval: 10_000,
    queryFn: () => read(api.GET('/projects/{projectUUID}/webhooks/{webhookUUID}', {
      params: { path: { projectUUID: project, webhookUUID: webhook } },
    })),
  })

  return (
    <Page title={query.data?.content.name ?? 'Webhook'}
      actions={<ButtonLink to={`/projects/${project}/webhooks` as string}>All webhooks</ButtonLink>}>
      <Loaded query={query}>
        {({ content }) => (
          <>
            <Overview project={project} webhook={content} />
            <Deliveries project={project} webhook={content} />
          </>
        )}
      </Loaded>
    </Page>
  )
}

function Overview({ project, webhook: w }: { project: string; webhook: Schemas['Webhook'] }) {
  const navigate = useNavigate()
  const [act, setAct] = useState<'edit' | 'rotate' | 'delete'>()
  const [secret, setSecret] = useState<string>()
  const path = { projectUUID: project, webhookUUID: w.uuid }
  const reload = () => queries.invalidateQueries({ queryKey: ['webhooks', project] })
  const close = () => setAct(undefined)

  async function attempt(work: () => Promise<string>) {
    try {
      toast(await work())
      await reload()
    } catch (error) {
      toast(error instanceof Error ? error.message : String(error), 'danger')
    }
  }

  const test = () => attempt(async () => {
    await read(api.POST('/projects/{projectUUID}/webhooks/{webhookUUID}/test', { params: { path } }))
    return 'The test is on its way.'
  })
  const pause = () => attempt(async () => {
    await read(api.PUT('/projects/{projectUUID}/webhooks/{webhookUUID}', { params: { path }, body: { paused: !w.paused } }))
    return w.paused ? 'The webhook delivers again.' : 'The webhook is paused.'
  })

  return (
    <Card title="Webhook" actions={
      <Row>
        <Button needs="testWebhook" onClick={() => void test()}>Send a test</Button>
        <Button needs="updateWebhook" onClick={() => setAct('edit')}>Edit</Button>
        <Button needs="updateWebhook" look={w.paused ? 'primary' : 'plain'} onClick={() => void pause()}>{w.paused ? 'Resume' : 'Pause'}</Button>
        <Button needs="rotateWebhookSecret" onClick={() => setAct('rotate')}>Rotate secret</Button>
        <Button needs="deleteWebhook" look="danger" onClick={() => setAct('delete')}>Delete</Button>
      </Row>
    }>
      <Details entries={[
        ['State', <WebhookState webhook={w} />],
        ['Paused', w.pausedAt === null ? undefined : <Time at={w.pausedAt} />],
        ['Endpoint', <code className={css.endpoint}>{w.endpoint}</code>],
        ['Changes of rows', w.tables.length === 0 ? 'none' : (
          <>{w.tables.map((t) => <div key={JSON.stringify(t)}><code>{t.schema}.{t.table}</code> {t.event === '*' ? 'all changes' : t.event.toLowerCase()}{t.filter !== '' && <> if <code>{t.filter}</code></>}</div>)}</>
        )],
        ['Other events', w.events.length === 0 ? 'none' : <>{w.events.map((e) => <div key={e}><code>{e}</code></div>)}</>],
        ['Headers', w.headers.length === 0 ? undefined : w.headers.join(', ')],
        ['Order', w.ordered ? 'one after the other' : 'as they come'],
        ['Waiting', w.pending.toLocaleString()],
        ['UUID', <Copyable value={w.uuid} label="UUID" />],
      ]} />
      {act === 'edit' && <WebhookForm project={project} former={w} onClose={close} onSaved={() => toast('The webhook is changed.')} />}
      {act === 'rotate' && (
        <Confirm title="Rotate secret" open action="Rotate secret" onClose={close} onSubmit={async () => {
          const { metadata } = await read(api.POST('/projects/{projectUUID}/webhooks/{webhookUUID}/secret', { params: { path } }))
          setSecret(metadata.secret)
        }}>
          Requests are signed with both secrets for a day. Then an endpoint with the former secret refuses them.
        </Confirm>
      )}
      {act === 'delete' && (
        <Confirm title="Delete webhook" open name={w.name} action="Delete webhook" onClose={close} onSubmit={async () => {
          await read(api.DELETE('/projects/{projectUUID}/webhooks/{webhookUUID}', { params: { path } }))
          toast(`${w.name} is deleted.`)
          await navigate({ to: `/projects/${project}/webhooks` })
          queries.removeQueries({ queryKey: ['webhooks', project, 'one', w.uuid] })
          await reload()
        }}>
          <b>{w.name}</b> hears of nothing more. Its deliveries are lost, also those that wait. This cannot be undone.
        </Confirm>
      )}
      {secret !== undefined && (
        <ShownOnce title="New signing secret" values={[{ label: 'Signing secret', value: secret }]} onClose={() => setSecret(undefined)} />
      )}
    </Card>
  )
}
