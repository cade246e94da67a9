import { useState } from 'react'
import { Badge, Code, Time } from '../../components/Bits'
import { Button } from '../../components/Button'
import { Details } from '../../components/Details'
import { Confirm, Dialog } from '../../components/Dialog'
import { jsonOf, parseExact } from '../../components/exact'
import { Row, Stack } from '../../components/Page'
import { Empty, Loaded } from '../../components/States'
import { Table } from '../../components/Table'
import { toast } from '../../components/Toast'
import { useURLState } from '../../url'
import { call, sendAgain, useMessages, type Kind, type Message } from './queries'
import css from './Queues.module.css'

/** The messages of a queue or of its archive. */
export function Messages({ project, queue, kind }: { project: string; queue: string; kind: Kind }) {
  const [open, setOpen] = useURLState('message', '')
  const query = useMessages(project, queue, kind)
  const messages = query.data?.pages.flat() ?? []
  const opened = messages.find((m) => m.id === open)

  return (
    <>
      <Loaded query={query}>
        {() => messages.length === 0 ? (
          <Empty title={kind === 'waiting' ? 'No message waits' : 'Nothing is archived'}>
            {kind === 'waiting' ? 'Send one here, or by pgmq.send in SQL.' : 'A worker archives what it wants to keep, and what has failed too often.'}
          </Empty>
        ) : (
          <>
            <Table label="Messages" rows={messages} keyOf={(m) => m.id} onOpen={(m) => setOpen(m.id)} columns={[
              { title: 'Number', cell: (m) => <button type="button" className={css.open} onClick={() => setOpen(m.id)}>{m.id}</button> },
              { title: 'Message', cell: (m) => <code className={css.body}>{m.body.slice(0, 200)}</code> },
              { title: 'Reads', cell: (m) => m.reads, align: 'right', narrow: true },
              { title: kind === 'waiting' ? 'Visible' : 'Archived', cell: (m) => kind === 'waiting' && !m.isHidden
                ? <Badge tone="success">now</Badge> : <Time at={m.time} />, narrow: true },
              { title: 'Sent', cell: (m) => <Time at={m.enqueuedAt} /> },
            ]} />
            {query.hasNextPage && (
              <Row><Button busy={query.isFetchingNextPage} onClick={() => void query.fetchNextPage()}>Load more messages</Button></Row>
            )}
          </>
        )}
      </Loaded>
      {opened !== undefined && <OneMessage project={project} queue={queue} kind={kind} message={opened} onClose={() => setOpen('')} />}
    </>
  )
}

function OneMessage({ project, queue, kind, message: m, onClose }: {
  project: string
  queue: string
  kind: Kind
  message: Message
  onClose: () => void
}) {
  const [deletes, setDeletes] = useState(false)
  const number: [string, string][] = [[queue, 'text'], [m.id, 'bigint']]

  async function act(name: string, done: string, ...more: [string, string][]) {
    try {
      await call(project, name, ...number, ...more)
      toast(done)
      onClose()
    } catch (error) {
      toast(error instanceof Error ? error.message : String(error), 'danger')
    }
  }

  async function again() {
    try {
      toast(`Sent again as message ${await sendAgain(project, queue, m.id)}.`)
      onClose()
    } catch (error) {
      toast(error instanceof Error ? error.message : String(error), 'danger')
    }
  }

  return (
    <Dialog title={`Message ${m.id}`} open onClose={onClose} side wide>
      <Stack>
        <Details entries={[
          ['Sent', <Time at={m.enqueuedAt} />],
          [kind === 'waiting' ? 'Visible' : 'Archived', kind === 'waiting' && !m.isHidden ? 'now' : <Time at={m.time} />],
          ['Reads', m.reads],
        ]} />
        {kind === 'archived' && (
          <Row>
            <Button needs="runSQL" onClick={() => void again()}>Send again</Button>
          </Row>
        )}
        {kind === 'waiting' && (
          <Row>
            {m.isHidden && <Button needs="runSQL" onClick={() => void act('set_vt', 'The message is visible.', ['0', 'integer'])}>Make visible now</Button>}
            <Button needs="runSQL" onClick={() => void act('archive', 'The message is archived.')}>Archive</Button>
            <Button needs="runSQL" look="danger" onClick={() => setDeletes(true)}>Delete</Button>
          </Row>
        )}
        <h3>Message</h3>
        <Code label="the message" text={indented(m.body)} />
        {m.headers !== null && (
          <>
            <h3>Headers</h3>
            <Code label="the headers" text={indented(m.headers)} />
          </>
        )}
      </Stack>
      {deletes && (
        <Confirm title="Delete message" open action="Delete message" onClose={() => setDeletes(false)} onSubmit={() => act('delete', 'The message is deleted.')}>
          Message {m.id} is lost. Archive it instead to keep it.
        </Confirm>
      )}
    </Dialog>
  )
}

/** Indents JSON; a long message was cut, and stays as it is. */
function indented(text: string): string {
  try {
    return jsonOf(parseExact(text), '\n')
  } catch {
    return `${text}…`
  }
}
