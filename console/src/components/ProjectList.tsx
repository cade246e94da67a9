import { useState } from 'react'
import { Link, useNavigate } from '@tanstack/react-router'
import { useQuery } from '@tanstack/react-query'
import { texts } from '#texts/components'
import { api, read, type Schemas } from '../api/client'
import { currentUser } from '../api/session'
import { queries } from '../queries'
import { useURLState } from '../url'
import { Badge, Time } from './Bits'
import { Button } from './Button'
import { FormDialog } from './Dialog'
import { HeldRole, type Operation } from './rights'
import { roles } from './Roles'
import { Empty, Loaded } from './States'
import { Pager, Table } from './Table'
import { toast } from './Toast'

type Project = Schemas['Project']

interface Narrowing {
  organization?: string
  search?: string
}

function useProjects({ organization, search = '' }: Narrowing, page: string, deleted: boolean) {
  return useQuery({
    queryKey: ['projects', deleted ? 'deleted' : 'present', organization, page, search],
    queryFn: () => read(api.GET('/projects', { params: { query: {
      page: Number(page), sort: 'name',
      ...(search !== '' && { search }),
      ...(organization !== undefined && { organizationUuid: organization }),
      ...(deleted && { status: 'deleted' as const }),
    } } })),
    placeholderData: (former) => former,
  })
}

/** The projects that the user can open, all or those of an organization. */
export function ProjectList({ onCreate, needs, ...narrowing }: Narrowing & { onCreate: () => void; needs?: Operation }) {
  const navigate = useNavigate()
  const [page, setPage] = useURLState('page', '1')
  const query = useProjects(narrowing, page, false)
  const searches = narrowing.search !== undefined && narrowing.search !== ''

  return (
    <Loaded query={query}>
      {({ content, metadata }) => content.length === 0 ? (
        <Empty title={searches ? texts.noProjectHasThisName : texts.noProjectYet}
          action={<Button needs={needs} look="primary" onClick={onCreate}>{texts.newProject}</Button>}>
          {texts.aProjectTakesASecond}
        </Empty>
      ) : (
        <>
          <Table label={texts.projects} rows={content} keyOf={(p) => p.uuid}
            onOpen={(p) => void navigate({ to: `/projects/${p.uuid}` })}
            columns={[
              { title: texts.name, cell: (p) => <Link to={`/projects/${p.uuid}` as string}>{p.name}</Link> },
              { title: texts.description, cell: (p) => p.description, narrow: true },
              { title: texts.status, cell: (p) => <Badge tone={p.status === 'active' ? 'success' : 'warning'}>{p.status}</Badge> },
              { title: texts.created, cell: (p) => <Time at={p.createdAt} />, narrow: true },
            ]} />
          <Pager page={metadata.page} pages={metadata.totalPages} total={metadata.total} onPage={(n) => setPage(String(n))} />
        </>
      )}
    </Loaded>
  )
}

/** Deleted projects that are not purged yet. */
export function DeletedProjects(narrowing: Narrowing) {
  const [page, setPage] = useURLState('deletedPage', '1')
  const [restored, setRestored] = useState<Project>()
  const query = useProjects(narrowing, page, true)
  const held = useHeldRoles()

  return (
    <Loaded query={query}>
      {({ content, metadata }) => content.length === 0 ? (
        <Empty title={narrowing.search ? texts.noDeletedProjectHasThis : texts.noDeletedProject}>
          {texts.aDeletedProjectStaysHere}
        </Empty>
      ) : (
        <>
          <Table label={texts.deletedProjects} rows={content} keyOf={(p) => p.uuid} columns={[
            { title: texts.name, cell: (p) => p.name },
            { title: texts.description, cell: (p) => p.description, narrow: true },
            { title: texts.deleted, cell: (p) => <Time at={p.deletedAt} /> },
            { title: '', align: 'right', cell: (p) => (
              <HeldRole value={held(p.organizationUuid)}>
                <Button needs="restoreProject" aria-label={texts.restoreProjectName(p.name)} onClick={() => setRestored(p)}>{texts.restore}</Button>
              </HeldRole>
            ) },
          ]} />
          <Pager page={metadata.page} pages={metadata.totalPages} total={metadata.total} onPage={(n) => setPage(String(n))} />
          {restored && <Restore project={restored} onClose={() => setRestored(undefined)} />}
        </>
      )}
    </Loaded>
  )
}

function Restore({ project, onClose }: { project: Project; onClose: () => void }) {
  async function restore() {
    await read(api.POST('/projects/{projectUUID}/restore', { params: { path: { projectUUID: project.uuid } } }))
    await queries.invalidateQueries({ queryKey: ['projects'] })
    toast(texts.nameIsBack(project.name))
  }

  return (
    <FormDialog title={texts.restoreProject} open action={texts.restoreProject} onClose={onClose} onSubmit={restore}>
      <p>
        {texts.becomesActiveAgainWithIts(<b>{project.name}</b>)}
      </p>
    </FormDialog>
  )
}

const organizationLimit = 100 // the API's maximum

/** Returns the user's role by organization; undefined while it is not known. */
function useHeldRoles(): (organization: string) => number | undefined {
  const administers = currentUser()?.roleId === roles.administrator
  const query = useQuery({
    queryKey: ['organizations', 'roles'],
    enabled: !administers,
    queryFn: () => read(api.GET('/organizations', { params: { query: { limit: organizationLimit } } })),
  })

  return (organization) => (administers ? roles.administrator : query.data?.content.find((o) => o.uuid === organization)?.roleId)
}
