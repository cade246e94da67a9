import { useState } from 'react'
import { Link, useNavigate } from '@tanstack/react-router'
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
  const create = <Button needs="runSQL" look="primary" onClick={() => setCreates(true)}>Create queue</Button>

  return (
    <Page title="Queues" lead="One program sends messages, another reads them. What was read but not deleted comes back." actions={create}>
      <Loaded query={query}>
        {(queues) => queues.length === 0 ? (
          <Empty title="No queue yet" action={create}>Create one for work that should not hold up a request, such as mails.</Empty>
        ) : (
          <Table label="Queues" rows={queues} keyOf={(q) => q.name} onOpen={(q) => void navigate({ to: address(q.name) })} columns={[
            { title: 'Name', cell: (q) => <Link to={address(q.name) as string}>{q.name}</Link> },
            { title: 'Messages', cell: (q) => q.length.toLocaleString(), align: 'right' },
            { title: 'Visible now', cell: (q) => q.visible.toLocaleString(), align: 'right' },
            { title: 'Age of the oldest', cell: (q) => ageOf(q.oldest), align: 'right', narrow: true },
            { title: 'Sent in all', cell: (q) => q.total.toLocaleString(), align: 'right', narrow: true },
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
    <FormDialog title="New queue" open action="Create queue" onClose={onClose} onSubmit={async () => {
      await call(project, 'create', [name, 'text'])
      onCreated(name)
    }}>
      <TextField label="Name" required maxLength={47} autoFocus pattern="[a-z_][a-z0-9_]*" value={name} placeholder="mails"
        hint="Lower-case letters, digits and underscores." onChange={(e) => setName(e.target.value)} />
    </FormDialog>
  )
}
