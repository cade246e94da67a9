import { useState } from 'react'
import { Link, useNavigate } from '@tanstack/react-router'
import { useQuery } from '@tanstack/react-query'
import { api, read } from '../../api/client'
import { Badge, Time } from '../../components/Bits'
import { Button } from '../../components/Button'
import { FormDialog } from '../../components/Dialog'
import { TextField } from '../../components/Field'
import { Page } from '../../components/Page'
import { Empty, Loaded } from '../../components/States'
import { Pager, Table } from '../../components/Table'
import { queries } from '../../queries'
import { useURLState } from '../../url'

/** All projects that the user can see. */
export function Projects() {
  const navigate = useNavigate()
  const [page, setPage] = useURLState('page', '1')
  const [search, setSearch] = useURLState('search', '')
  const [creates, setCreates] = useState(false)
  const query = useQuery({
    queryKey: ['projects', page, search],
    queryFn: () => read(api.GET('/projects', {
      params: { query: { page: Number(page), sort: 'name', ...(search !== '' && { search }) } },
    })),
  })

  return (
    <Page title="Projects" lead="Each project is a PostgreSQL database with its own users, files and keys."
      actions={<Button look="primary" onClick={() => setCreates(true)}>New project</Button>}>
      <TextField label="Search by name" type="search" defaultValue={search} onChange={(e) => setSearch(e.target.value)} />
      <Loaded query={query}>
        {({ content, metadata }) => content.length === 0 ? (
          <Empty title={search === '' ? 'No project yet' : 'No project has this name'}
            action={<Button look="primary" onClick={() => setCreates(true)}>New project</Button>}>
            A project takes a second to create and nothing while it is idle.
          </Empty>
        ) : (
          <>
            <Table label="Projects" rows={content} keyOf={(p) => p.uuid}
              onOpen={(p) => void navigate({ to: `/projects/${p.uuid}` })}
              columns={[
                { title: 'Name', cell: (p) => <Link to={`/projects/${p.uuid}` as string}>{p.name}</Link> },
                { title: 'Description', cell: (p) => p.description, narrow: true },
                { title: 'Status', cell: (p) => (
                  <Badge tone={p.status === 'active' ? 'success' : 'warning'}>{p.status}</Badge>
                ) },
                { title: 'Created', cell: (p) => <Time at={p.createdAt} />, narrow: true },
              ]} />
            <Pager page={metadata.page} pages={metadata.totalPages} total={metadata.total}
              onPage={(n) => setPage(String(n))} />
          </>
        )}
      </Loaded>
      {creates && <NewProject onClose={() => setCreates(false)} />}
    </Page>
  )
}

function NewProject({ onClose }: { onClose: () => void }) {
  const navigate = useNavigate()
  const [name, setName] = useState('')
  const [description, setDescription] = useState('')

  async function create() {
    const { content } = await read(api.POST('/projects', {
      body: { name, ...(description !== '' && { description }) },
      headers: { 'Idempotency-Key': crypto.randomUUID() },
    }))
    await queries.invalidateQueries({ queryKey: ['projects'] })
    await navigate({ to: `/projects/${content.uuid}` })
  }

  return (
    <FormDialog title="New project" open onClose={onClose} action="Create project" onSubmit={create}>
      <TextField label="Name" required value={name} onChange={(e) => setName(e.target.value)} autoFocus />
      <TextField label="Description" value={description} onChange={(e) => setDescription(e.target.value)} />
    </FormDialog>
  )
}
