import { useState } from 'react'
import { useNavigate, useParams } from '@tanstack/react-router'
import { texts } from '#texts/queues'
import { Button, ButtonLink } from '../../components/Button'
import { Confirm } from '../../components/Dialog'
import { Details } from '../../components/Details'
import { Card, Page, Row } from '../../components/Page'
import { SearchTabs } from '../../components/SearchTabs'
import { Empty, Loaded } from '../../components/States'
import { toast } from '../../components/Toast'
import { useURLState } from '../../url'
import { ageOf } from './age'
import { Messages } from './Messages'
import { call, tableOf, useQueues } from './queries'
import { SendMessage } from './SendMessage'

const tabs = [{ value: 'waiting', text: texts.messages }, { value: 'archived', text: texts.archive }]

/** One queue with its messages. */
export function Queue() {
  const { project, queue } = useParams({ strict: false }) as { project: string; queue: string }
  const navigate = useNavigate()
  const [tab] = useURLState('tab', 'waiting')
  const [act, setAct] = useState<'send' | 'purge' | 'drop'>()
  const query = useQueues(project)
  const close = () => setAct(undefined)

  return (
    <Page title={queue} actions={<ButtonLink to={`/projects/${project}/queues` as string}>{texts.allQueues}</ButtonLink>}>
      <Loaded query={query}>
        {(queues) => {
          const found = queues.find((q) => q.name === queue)
          if (found === undefined) {
            return <Empty title={texts.thereIsNoQueueWith}>{texts.itMayHaveBeenDropped}</Empty>
          }

          return (
            <>
              <Card title={texts.queue} actions={
                <Row>
                  <Button needs="runSQL" look="primary" onClick={() => setAct('send')}>{texts.sendAMessage}</Button>
                  <Button needs="runSQL" look="danger" onClick={() => setAct('purge')}>{texts.purge}</Button>
                  <Button needs="runSQL" look="danger" onClick={() => setAct('drop')}>{texts.dropQueue}</Button>
                </Row>
              }>
                <Details entries={[
                  [texts.messages, found.length.toLocaleString()],
                  [texts.visibleNow, found.visible.toLocaleString()],
                  [texts.ageOfTheOldest, found.oldest === null ? texts.noMessage : ageOf(found.oldest)],
                  [texts.sentInAll, found.total.toLocaleString()],
                  [texts.tables, <><code>{tableOf(queue, 'waiting')}</code>, <code>{tableOf(queue, 'archived')}</code></>],
                ]} />
              </Card>
              <SearchTabs label={texts.messages} current={tab} tabs={tabs} />
              <Messages key={tab} project={project} queue={queue} kind={tab === 'archived' ? 'archived' : 'waiting'} />
            </>
          )
        }}
      </Loaded>
      {act === 'send' && <SendMessage project={project} queue={queue} onClose={close} />}
      {act === 'purge' && (
        <Confirm title={texts.purgeQueue} open name={queue} action={texts.purgeQueue} onClose={close} onSubmit={async () => {
          const n = Number(await call(project, 'purge_queue', [queue, 'text']))
          toast(n === 1 ? texts.oneMessageIsDeleted : texts.nMessagesAreDeleted(n.toLocaleString()))
        }}>
          {texts.allMessagesInAreDeleted(<b>{queue}</b>)}
        </Confirm>
      )}
      {act === 'drop' && (
        <Confirm title={texts.dropQueue} open name={queue} action={texts.dropQueue} onClose={close} onSubmit={async () => {
          await call(project, 'drop_queue', [queue, 'text'])
          toast(texts.queueIsDropped(queue))
          await navigate({ to: `/projects/${project}/queues` })
        }}>
          {texts.itsMessagesAndItsArchive(<b>{queue}</b>)}
        </Confirm>
      )}
    </Page>
  )
}
