import { useState } from 'react'
import { Link, useNavigate } from '@tanstack/react-router'
import { useQuery } from '@tanstack/react-query'
import { api, inProject, read, type Schemas } from '../../api/client'
import { Badge, formatBytes, Time } from '../../components/Bits'
import { Button } from '../../components/Button'
import { Confirm } from '../../components/Dialog'
import { SelectField } from '../../components/Field'
import { FilterBar, useFilters, useProject } from '../../components/Filters'
import { Menu } from '../../components/Menu'
import { Page } from '../../components/Page'
import { Empty, Loaded } from '../../components/States'
import { Pager, Table } from '../../components/Table'
import { toast } from '../../components/Toast'
import { queries } from '../../queries'
import { ContainerForm } from './ContainerForm'

type Container = Schemas['Container']

const sorts = {
  name: { sort: 'name', order: 'asc', text: 'Name' },
  newest: { sort: 'createdAt', order: 'desc', text: 'Newest first' },
  changed: { sort: 'updatedAt', order: 'desc', text: 'Last changed' },
} as const

/** The containers of the project's files. */
export function Containers() {
  const project = useProject()
  const navigate = useNavigate()
  const [{ page, sort }, setFilters] = useFilters('page', 'sort')
  const [edited, setEdited] = useState<Container | 'new' | null>(null)
  const [deleted, setDeleted] = useState<Container | null>(null)
  const { sort: column, order } = sorts[sort as keyof typeof sorts] ?? sorts.name
  const query = useQuery({
    queryKey: ['containers', project, page, column, order],
    queryFn: () => read(api.GET('/containers', {
      params: { header: inProject(project), query: { page: Number(page) || 1, sort: column, order } },
    })),
    placeholderData: (former) => former,
  })
  const create = <Button needs="createContainer" look="primary" onClick={() => setEdited('new')}>Create container</Button>

  return (
    <Page title="Files" lead="A container has files, a size limit and rules for who may read them. Applications call it a bucket."
      actions={create}>
      <Loaded query={query}>
        {({ content, metadata }) => content.length === 0 ? (
          <Empty title="No container yet" action={create}>Create one, then upload files or let your users do it.</Empty>
        ) : (
          <>
            <FilterBar>
              <SelectField label="Order" value={sort} onChange={(e) => setFilters({ sort: e.target.value, page: '' })}>
                {Object.entries(sorts).map(([name, s]) => (
                  <option key={name} value={name === 'name' ? '' : name}>{s.text}</option>
                ))}
              </SelectField>
            </FilterBar>
            <Table label="Containers" rows={content} keyOf={(c) => c.uuid}
              onOpen={(c) => void navigate({ to: `/projects/${project}/files/${c.uuid}` })}
              columns={[
                { title: 'Name', cell: (c) => <Link to={`/projects/${project}/files/${c.uuid}` as string}>{c.name}</Link> },
                { title: 'Description', cell: (c) => c.description, narrow: true },
                { title: 'Readable', cell: (c) => (
                  c.isPublic ? <Badge tone="warning">by everyone</Badge> : <Badge>by policy</Badge>
                ) },
                { title: 'Files', cell: (c) => c.totalFiles.toLocaleString(), align: 'right' },
                { title: 'Size limit', cell: (c) => formatBytes(c.maxFileSize), align: 'right', narrow: true },
                { title: 'Changed', cell: (c) => <Time at={c.updatedAt} />, narrow: true },
                { title: 'Actions', align: 'right', cell: (c) => (
                  <Menu label={`Actions for ${c.name}`} items={[
                    { text: 'Edit container', needs: 'updateContainer', onSelect: () => setEdited(c) },
                    { text: 'Delete container', danger: true, needs: 'deleteContainer', onSelect: () => setDeleted(c) },
                  ]} />
                ) },
              ]} />
            <Pager page={metadata.page} pages={metadata.totalPages} total={metadata.total}
              onPage={(n) => setFilters({ page: n === 1 ? '' : String(n) })} />
          </>
        )}
      </Loaded>
      {edited === 'new' && <ContainerForm project={project} onClose={() => setEdited(null)} />}
      {edited !== null && edited !== 'new' && (
        <ContainerForm project={project} uuid={edited.uuid} onClose={() => setEdited(null)} />
      )}
      {deleted && <DeleteContainer project={project} container={deleted} onClose={() => setDeleted(null)} />}
    </Page>
  )
}

function DeleteContainer({ project, container, onClose }: { project: string; container: Container; onClose: () => void }) {
  const files = container.totalFiles

  async function remove() {
    await read(api.DELETE('/containers/{containerUUID}', {
      params: {
        header: inProject(project), path: { containerUUID: container.uuid }, ...(files > 0 && { query: { force: true } }),
      },
    }))
    toast(`Container ${container.name} is deleted.`)
    await queries.invalidateQueries({ queryKey: ['containers', project] })
  }

  return (
    <Confirm title="Delete this container" open onClose={onClose} action="Delete container" name={container.name}
      onSubmit={remove}>
      <p>
        {files === 0 ? 'The container is empty.' : `${files.toLocaleString()} ${files === 1 ? 'file is' : 'files are'} lost.`}{' '}
        Its policies and signed URLs stop working. This cannot be undone, except by a restore of a backup.
      </p>
    </Confirm>
  )
}
