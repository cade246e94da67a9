import { useState } from 'react'
import { useNavigate, useParams } from '@tanstack/react-router'
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

const tabs = [{ value: 'waiting', text: 'Messages' }, { value: 'archived', text: 'Archive' }]

/** One queue with its messages. */
export function Queue() {
  const { project, queue } = useParams({ strict: false }) as { project: string; queue: string }
  const navigate = useNavigate()
  const [tab] = useURLState('tab', 'waiting')
  const [act, setAct] = useState<'send' | 'purge' | 'drop'>()
  const query = useQueues(project)
  const close = () => setAct(undefined)

  return (
    <Page title={queue} actions={<ButtonLink to={`/projects/${project}/queues` as string}>All queues</ButtonLink>}>
      <Loaded query={query}>
        {(queues) => {
          const found = queues.find((q) => q.name === queue)
          if (found === undefined) {
            return <Empty title="There is no queue with this name">It may have been dropped meanwhile.</Empty>
          }

          return (
            <>
              <Card title="Queue" actions={
                <Row>
                  <Button needs="runSQL" look="primary" onClick={() => setAct('send')}>Send a message</Button>
                  <Button needs="runSQL" look="danger" onClick={() => setAct('purge')}>Purge</Button>
                  <Button needs="runSQL" look="danger" onClick={() => setAct('drop')}>Drop queue</Button>
                </Row>
              }>
                <Details entries={[
                  ['Messages', found.length.toLocaleString()],
                  ['Visible now', found.visible.toLocaleString()],
                  ['Age of the oldest', found.oldest === null ? 'no message' : ageOf(found.oldest)],
                  ['Sent in all', found.total.toLocaleString()],
                  ['Tables', <><code>{tableOf(queue, 'waiting')}</code>, <code>{tableOf(queue, 'archived')}</code></>],
                ]} />
              </Card>
              <SearchTabs label="Messages" current={tab} tabs={tabs} />
              <Messages key={tab} project={project} queue={queue} kind={tab === 'archived' ? 'archived' : 'waiting'} />
            </>
          )
        }}
      </Loaded>
      {act === 'send' && <SendMessage project={project} queue={queue} onClose={close} />}
      {act === 'purge' && (
        <Confirm title="Purge queue" open name={queue} action="Purge queue" onClose={close} onSubmit={async () => {
          const n = Number(await call(project, 'purge_queue', [queue, 'text']))
          toast(n === 1 ? 'One message is deleted.' : `${n.toLocaleString()} messages are deleted.`)
        }}>
          All messages in <b>{queue}</b> are deleted, also those that a worker reads now. The archive stays.
        </Confirm>
      )}
      {act === 'drop' && (
        <Confirm title="Drop queue" open name={queue} action="Drop queue" onClose={close} onSubmit={async () => {
          await call(project, 'drop_queue', [queue, 'text'])
          toast(`${queue} is dropped.`)
          await navigate({ to: `/projects/${project}/queues` })
        }}>
          <b>{queue}</b>, its messages and its archive are lost. Programs that send to it or read from it fail.
        </Confirm>
      )}
    </Page>
  )
}
