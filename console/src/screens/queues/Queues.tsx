import { useState } from 'react'
import { Link, useNavigate } from '@tanstack/react-router'
import { texts } from '#texts/queues'
import { Button } from '../../components/Button'
import { FormDialog } from '../../components/Dialog'
import { TextField } from '../../components/Field'
import { useProject } from '../../components/Filters'
import { Page } from '../../components/Page'
import { Empty, Loaded } from '../../components/States'
import { Table } from '../../components/Table'
import { ageOf } from './age'
import { call, useQueues } from './queries'

/** Durable queues of messages in the database. */
export function Queues() {
  const project = useProject()
  const navigate = useNavigate()
  const [creates, setCreates] = useState(false)
  const query = useQueues(project)
  const address = (name: string) => `/projects/${project}/queues/${encodeURIComponent(name)}`
  const create = <Button needs="runSQL" look="primary" onClick={() => setCreates(true)}>{texts.createQueue}</Button>

  return (
    <Page title={texts.queues} lead={texts.oneProgramSendsMessagesAnother} actions={create}>
      <Loaded query={query}>
        {(queues) => queues.length === 0 ? (
          <Empty title={texts.noQueueYet} action={create}>{texts.createOneForWorkThat}</Empty>
        ) : (
          <Table label={texts.queues} rows={queues} keyOf={(q) => q.name} onOpen={(q) => void navigate({ to: address(q.name) })} columns={[
            { title: texts.name, cell: (q) => <Link to={address(q.name) as string}>{q.name}</Link> },
            { title: texts.messages, cell: (q) => q.length.toLocaleString(), align: 'right' },
            { title: texts.visibleNow, cell: (q) => q.visible.toLocaleString(), align: 'right' },
            { title: texts.ageOfTheOldest, cell: (q) => ageOf(q.oldest), align: 'right', narrow: true },
            { title: texts.sentInAll, cell: (q) => q.total.toLocaleString(), align: 'right', narrow: true },
          ]} />
        )}
      </Loaded>
      {creates && <NewQueue project={project} onClose={() => setCreates(false)} onCreated={(name) => void navigate({ to: address(name) })} />}
    </Page>
  )
}

function NewQueue({ project, onClose, onCreated }: { project: string; onClose: () => void; onCreated: (name: string) => void }) {
  const [name, setName] = useState('')

  return (
    <FormDialog title={texts.newQueue} open action={texts.createQueue} onClose={onClose} onSubmit={async () => {
      await call(project, 'create', [name, 'text'])
      onCreated(name)
    }}>
      <TextField label={texts.name} required maxLength={47} autoFocus pattern="[a-z_][a-z0-9_]*" value={name} placeholder={texts.mails}
        hint={texts.lowerCaseLettersDigitsAnd} onChange={(e) => setName(e.target.value)} />
    </FormDialog>
  )
}
