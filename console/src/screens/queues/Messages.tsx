import { useState } from 'react'
import { texts } from '#texts/queues'
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
          <Empty title={kind === 'waiting' ? texts.noMessageWaits : texts.nothingIsArchived}>
            {kind === 'waiting' ? texts.sendOneHereOrBy : texts.aWorkerArchivesWhatIt}
          </Empty>
        ) : (
          <>
            <Table label={texts.messages} rows={messages} keyOf={(m) => m.id} onOpen={(m) => setOpen(m.id)} columns={[
              { title: texts.number, cell: (m) => <button type="button" className={css.open} onClick={() => setOpen(m.id)}>{m.id}</button> },
              { title: texts.message, cell: (m) => <code className={css.body}>{m.body.slice(0, 200)}</code> },
              { title: texts.reads, cell: (m) => m.reads, align: 'right', narrow: true },
              { title: kind === 'waiting' ? texts.visible : texts.archived, cell: (m) => kind === 'waiting' && !m.isHidden
                ? <Badge tone="success">{texts.now}</Badge> : <Time at={m.time} />, narrow: true },
              { title: texts.sent, cell: (m) => <Time at={m.enqueuedAt} /> },
            ]} />
            {query.hasNextPage && (
              <Row><Button busy={query.isFetchingNextPage} onClick={() => void query.fetchNextPage()}>{texts.loadMoreMessages}</Button></Row>
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
      toast(texts.sentAgainAsMessage(String(await sendAgain(project, queue, m.id))))
      onClose()
    } catch (error) {
      toast(error instanceof Error ? error.message : String(error), 'danger')
    }
  }

  return (
    <Dialog title={texts.messageId(m.id)} open onClose={onClose} side wide>
      <Stack>
        <Details entries={[
          [texts.sent, <Time at={m.enqueuedAt} />],
          [kind === 'waiting' ? texts.visible : texts.archived, kind === 'waiting' && !m.isHidden ? 'now' : <Time at={m.time} />],
          [texts.reads, m.reads],
        ]} />
        {kind === 'archived' && (
          <Row>
            <Button needs="runSQL" onClick={() => void again()}>{texts.sendAgain}</Button>
          </Row>
        )}
        {kind === 'waiting' && (
          <Row>
            {m.isHidden && <Button needs="runSQL" onClick={() => void act('set_vt', texts.theMessageIsVisible, ['0', 'integer'])}>{texts.makeVisibleNow}</Button>}
            <Button needs="runSQL" onClick={() => void act('archive', texts.theMessageIsArchived)}>{texts.archive}</Button>
            <Button needs="runSQL" look="danger" onClick={() => setDeletes(true)}>{texts.delete}</Button>
          </Row>
        )}
        <h3>{texts.message}</h3>
        <Code label={texts.theMessage} text={indented(m.body)} />
        {m.headers !== null && (
          <>
            <h3>{texts.headers}</h3>
            <Code label={texts.theHeaders} text={indented(m.headers)} />
          </>
        )}
      </Stack>
      {deletes && (
        <Confirm title={texts.deleteMessage} open action={texts.deleteMessage} onClose={() => setDeletes(false)} onSubmit={() => act('delete', texts.theMessageIsDeleted)}>
          {texts.messageIsLostArchiveIt(m.id)}
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
