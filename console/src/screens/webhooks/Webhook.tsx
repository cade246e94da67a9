import { useState } from 'react'
import { useNavigate, useParams } from '@tanstack/react-router'
import { useQuery } from '@tanstack/react-query'
import { texts } from '#texts/webhooks'
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
    <Page title={query.data?.content.name ?? texts.webhook}
      actions={<ButtonLink to={`/projects/${project}/webhooks` as string}>{texts.allWebhooks}</ButtonLink>}>
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
    return texts.theTestIsOnIts
  })
  const pause = () => attempt(async () => {
    await read(api.PUT('/projects/{projectUUID}/webhooks/{webhookUUID}', { params: { path }, body: { paused: !w.paused } }))
    return w.paused ? texts.theWebhookDeliversAgain : texts.theWebhookIsPaused
  })

  return (
    <Card title={texts.webhook} actions={
      <Row>
        <Button needs="testWebhook" onClick={() => void test()}>{texts.sendATest}</Button>
        <Button needs="updateWebhook" onClick={() => setAct('edit')}>{texts.edit}</Button>
        <Button needs="updateWebhook" look={w.paused ? 'primary' : 'plain'} onClick={() => void pause()}>{w.paused ? texts.resume : texts.pause}</Button>
        <Button needs="rotateWebhookSecret" onClick={() => setAct('rotate')}>{texts.rotateSecret}</Button>
        <Button needs="deleteWebhook" look="danger" onClick={() => setAct('delete')}>{texts.delete}</Button>
      </Row>
    }>
      <Details entries={[
        [texts.state, <WebhookState webhook={w} />],
        [texts.paused, w.pausedAt === null ? undefined : <Time at={w.pausedAt} />],
        [texts.endpoint, <code className={css.endpoint}>{w.endpoint}</code>],
        [texts.changesOfRows, w.tables.length === 0 ? 'none' : (
          <>{w.tables.map((t) => <div key={JSON.stringify(t)}><code>{t.schema}.{t.table}</code> {t.event === '*' ? texts.allChanges : t.event.toLowerCase()}{t.filter !== '' && <>{texts.ifFilter(<code>{t.filter}</code>)}</>}</div>)}</>
        )],
        [texts.otherEvents, w.events.length === 0 ? 'none' : <>{w.events.map((e) => <div key={e}><code>{e}</code></div>)}</>],
        [texts.headers, w.headers.length === 0 ? undefined : w.headers.join(', ')],
        [texts.order, w.ordered ? texts.oneAfterTheOther : 'as they come'],
        [texts.waiting, w.pending.toLocaleString()],
        ['UUID', <Copyable value={w.uuid} label={texts.uuid} />],
      ]} />
      {act === 'edit' && <WebhookForm project={project} former={w} onClose={close} onSaved={() => toast(texts.theWebhookIsChanged)} />}
      {act === 'rotate' && (
        <Confirm title={texts.rotateSecret} open action={texts.rotateSecret} onClose={close} onSubmit={async () => {
          const { metadata } = await read(api.POST('/projects/{projectUUID}/webhooks/{webhookUUID}/secret', { params: { path } }))
          setSecret(metadata.secret)
        }}>
          {texts.requestsAreSignedWithBoth}
        </Confirm>
      )}
      {act === 'delete' && (
        <Confirm title={texts.deleteWebhook} open name={w.name} action={texts.deleteWebhook} onClose={close} onSubmit={async () => {
          await read(api.DELETE('/projects/{projectUUID}/webhooks/{webhookUUID}', { params: { path } }))
          toast(texts.nameIsDeleted(w.name))
          await navigate({ to: `/projects/${project}/webhooks` })
          queries.removeQueries({ queryKey: ['webhooks', project, 'one', w.uuid] })
          await reload()
        }}>
          {texts.hearsOfNothingMoreIts(<b>{w.name}</b>)}
        </Confirm>
      )}
      {secret !== undefined && (
        <ShownOnce title={texts.newSigningSecret} values={[{ label: texts.signingSecret, value: secret }]} onClose={() => setSecret(undefined)} />
      )}
    </Card>
  )
}
