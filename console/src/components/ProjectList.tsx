import { useState } from 'react'
import { Link, useNavigate } from '@tanstack/react-router'
import { useQuery } from '@tanstack/react-query'
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
        <Empty title={searches ? 'No project has this name' : 'No project yet'}
          action={<Button needs={needs} look="primary" onClick={onCreate}>New project</Button>}>
          A project takes a second to create and nothing while it is idle.
        </Empty>
      ) : (
        <>
          <Table label="Projects" rows={content} keyOf={(p) => p.uuid}
            onOpen={(p) => void navigate({ to: `/projects/${p.uuid}` })}
            columns={[
              { title: 'Name', cell: (p) => <Link to={`/projects/${p.uuid}` as string}>{p.name}</Link> },
              { title: 'Description', cell: (p) => p.description, narrow: true },
              { title: 'Status', cell: (p) => <Badge tone={p.status === 'active' ? 'success' : 'warning'}>{p.status}</Badge> },
              { title: 'Created', cell: (p) => <Time at={p.createdAt} />, narrow: true },
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
        <Empty title={narrowing.search ? 'No deleted project has this name' : 'No deleted project'}>
          A deleted project stays here for a week, unless the instance has another time. Then it is purged.
        </Empty>
      ) : (
        <>
          <Table label="Deleted projects" rows={content} keyOf={(p) => p.uuid} columns={[
            { title: 'Name', cell: (p) => p.name },
            { title: 'Description', cell: (p) => p.description, narrow: true },
            { title: 'Deleted', cell: (p) => <Time at={p.deletedAt} /> },
            { title: '', align: 'right', cell: (p) => (
              <HeldRole value={held(p.organizationUuid)}>
                <Button needs="restoreProject" aria-label={`Restore project ${p.name}`} onClick={() => setRestored(p)}>Restore</Button>
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
    toast(`${project.name} is back.`)
  }

  return (
    <FormDialog title="Restore project" open action="Restore project" onClose={onClose} onSubmit={restore}>
      <p>
        <b>{project.name}</b> becomes active again with its database, files, users, keys and backups, as it was when it was
        deleted. If another project has taken its name meanwhile, rename that one first.
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
