import { useState } from 'react'
import { Link, useNavigate } from '@tanstack/react-router'
import { useQuery } from '@tanstack/react-query'
import { texts } from '#texts/forms'
import { api, inProject, read, type Schemas } from '../../api/client'
import { Badge, Time } from '../../components/Bits'
import { Button } from '../../components/Button'
import { FormDialog } from '../../components/Dialog'
import { SelectField, TextArea, TextField } from '../../components/Field'
import { FilterBar, useFilters, useProject } from '../../components/Filters'
import { Page } from '../../components/Page'
import { Empty, Loaded } from '../../components/States'
import { Pager, Table } from '../../components/Table'
import { queries } from '../../queries'

const sorts = {
  newest: { sort: 'createdAt', order: 'desc', text: texts.newestFirst },
  name: { sort: 'name', order: 'asc', text: texts.name },
  changed: { sort: 'updatedAt', order: 'desc', text: texts.lastChanged },
} as const

/** The forms of a project. */
export function Forms() {
  const project = useProject()
  const navigate = useNavigate()
  const [{ page, sort }, setFilters] = useFilters('page', 'sort')
  const [creates, setCreates] = useState(false)
  const { sort: column, order } = sorts[sort as keyof typeof sorts] ?? sorts.newest
  const query = useQuery({
    queryKey: ['forms', project, page, column, order],
    queryFn: () => read(api.GET('/forms', {
      params: { header: inProject(project), query: { page: Number(page) || 1, sort: column, order } },
    })),
    placeholderData: (former) => former,
  })
  const create = <Button needs="createForm" look="primary" onClick={() => setCreates(true)}>{texts.createForm}</Button>

  return (
    <Page title={texts.forms} lead={texts.questionsThatAnyoneWithThe} actions={create}>
      <Loaded query={query}>
        {({ content, metadata }) => content.length === 0 ? (
          <Empty title={texts.noFormYet} action={create}>{texts.createAFormAddIts}</Empty>
        ) : (
          <>
            <FilterBar>
              <SelectField label={texts.order} value={sort} onChange={(e) => setFilters({ sort: e.target.value, page: '' })}>
                {Object.entries(sorts).map(([name, s]) => (
                  <option key={name} value={name === 'newest' ? '' : name}>{s.text}</option>
                ))}
              </SelectField>
            </FilterBar>
            <Table label={texts.forms} rows={content} keyOf={(f) => f.uuid}
              onOpen={(f) => void navigate({ to: `/projects/${project}/forms/${f.uuid}` })}
              columns={[
                { title: texts.name, cell: (f) => <Link to={`/projects/${project}/forms/${f.uuid}` as string}>{f.name}</Link> },
                { title: texts.state, cell: (f) => <FormState state={f.state} /> },
                { title: texts.link, cell: (f) => (f.link === null ? 'none' : 'public'), narrow: true },
                { title: texts.responses, cell: (f) => f.totalResponses.toLocaleString(), align: 'right' },
                { title: texts.changed, cell: (f) => <Time at={f.updatedAt} />, narrow: true },
              ]} />
            <Pager page={metadata.page} pages={metadata.totalPages} total={metadata.total}
              onPage={(n) => setFilters({ page: n === 1 ? '' : String(n) })} />
          </>
        )}
      </Loaded>
      {creates && <NewForm project={project} onClose={() => setCreates(false)} />}
    </Page>
  )
}

export function FormState({ state }: { state: Schemas['Form']['state'] }) {
  const tone = { draft: 'neutral', open: 'success', closed: 'warning' } as const
  return <Badge tone={tone[state]}>{state}</Badge>
}

function NewForm({ project, onClose }: { project: string; onClose: () => void }) {
  const navigate = useNavigate()
  const [key] = useState(() => crypto.randomUUID())
  const [name, setName] = useState('')
  const [description, setDescription] = useState('')

  async function create() {
    const { content } = await read(api.POST('/forms', {
      params: { header: inProject(project) },
      body: { name, ...(description !== '' && { description }) },
      headers: { 'Idempotency-Key': key },
    }))
    await queries.invalidateQueries({ queryKey: ['forms', project] })
    await navigate({ to: `/projects/${project}/forms/${content.uuid}` })
  }

  return (
    <FormDialog title={texts.createForm} open onClose={onClose} action={texts.createForm} onSubmit={create}>
      <TextField label={texts.name} required maxLength={100} value={name} autoFocus onChange={(e) => setName(e.target.value)} />
      <TextArea label={texts.description} maxLength={500} value={description} hint={texts.shownAboveTheFields}
        onChange={(e) => setDescription(e.target.value)} />
    </FormDialog>
  )
}
