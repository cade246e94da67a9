import { useState } from 'react'
import { Link, useNavigate } from '@tanstack/react-router'
import { useQuery } from '@tanstack/react-query'
import { texts } from '#texts/files'
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
  name: { sort: 'name', order: 'asc', text: texts.name },
  newest: { sort: 'createdAt', order: 'desc', text: texts.newestFirst },
  changed: { sort: 'updatedAt', order: 'desc', text: texts.lastChanged },
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
  const create = <Button needs="createContainer" look="primary" onClick={() => setEdited('new')}>{texts.createContainer}</Button>

  return (
    <Page title={texts.files} lead={texts.aContainerHasFilesA}
      actions={create}>
      <Loaded query={query}>
        {({ content, metadata }) => content.length === 0 ? (
          <Empty title={texts.noContainerYet} action={create}>{texts.createOneThenUploadFiles}</Empty>
        ) : (
          <>
            <FilterBar>
              <SelectField label={texts.order} value={sort} onChange={(e) => setFilters({ sort: e.target.value, page: '' })}>
                {Object.entries(sorts).map(([name, s]) => (
                  <option key={name} value={name === 'name' ? '' : name}>{s.text}</option>
                ))}
              </SelectField>
            </FilterBar>
            <Table label={texts.containers} rows={content} keyOf={(c) => c.uuid}
              onOpen={(c) => void navigate({ to: `/projects/${project}/files/${c.uuid}` })}
              columns={[
                { title: texts.name, cell: (c) => <Link to={`/projects/${project}/files/${c.uuid}` as string}>{c.name}</Link> },
                { title: texts.description, cell: (c) => c.description, narrow: true },
                { title: texts.readable, cell: (c) => (
                  c.isPublic ? <Badge tone="warning">{texts.byEveryone}</Badge> : <Badge>{texts.byPolicy}</Badge>
                ) },
                { title: texts.files, cell: (c) => c.totalFiles.toLocaleString(), align: 'right' },
                { title: texts.sizeLimit, cell: (c) => formatBytes(c.maxFileSize), align: 'right', narrow: true },
                { title: texts.changed, cell: (c) => <Time at={c.updatedAt} />, narrow: true },
                { title: texts.actions, align: 'right', cell: (c) => (
                  <Menu label={texts.actionsForName(c.name)} items={[
                    { text: texts.editContainer, needs: 'updateContainer', onSelect: () => setEdited(c) },
                    { text: texts.deleteContainer, danger: true, needs: 'deleteContainer', onSelect: () => setDeleted(c) },
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
    toast(texts.containerNameIsDeleted(container.name))
    await queries.invalidateQueries({ queryKey: ['containers', project] })
  }

  return (
    <Confirm title={texts.deleteThisContainer} open onClose={onClose} action={texts.deleteContainer} name={container.name}
      onSubmit={remove}>
      <p>
        {texts.itsPoliciesAndSignedURLs(files === 0 ? texts.theContainerIsEmpty : texts.filesLost(files.toLocaleString(), files === 1 ? texts.fileIs : texts.filesAre))}
      </p>
    </Confirm>
  )
}
