import { useState } from 'react'
import { useNavigate } from '@tanstack/react-router'
import { useQuery } from '@tanstack/react-query'
import { api, read, type Schemas } from '../../api/client'
import { Button } from '../../components/Button'
import { Confirm } from '../../components/Dialog'
import { CheckField } from '../../components/Field'
import { Card, Stack } from '../../components/Page'
import { Loaded } from '../../components/States'
import { toast } from '../../components/Toast'
import { queries } from '../../queries'

type Project = Schemas['Project']

/** Acts that stop or end a project. */
export function Danger({ project }: { project: string }) {
  const query = useQuery({
    queryKey: ['project', project],
    queryFn: () => read(api.GET('/projects/{projectUUID}', { params: { path: { projectUUID: project } } })),
  })

  return (
    <Loaded query={query}>
      {({ content }) => (
        <>
          <PauseCard project={content} />
          <DeleteCard project={content} />
        </>
      )}
    </Loaded>
  )
}

function PauseCard({ project }: { project: Project }) {
  const [asks, setAsks] = useState(false)
  const [busy, setBusy] = useState(false)
  const params = { path: { projectUUID: project.uuid } }

  async function resume() {
    setBusy(true)
    try {
      await read(api.POST('/projects/{projectUUID}/resume', { params }))
      await queries.invalidateQueries()
    } catch (error) {
      toast(error instanceof Error ? error.message : String(error), 'danger')
    } finally {
      setBusy(false)
    }
  }

  if (project.status === 'paused') {
    return (
      <Card title="Resume project" lead="The project is paused. Applications work again as soon as it is resumed."
        actions={<Button needs="resumeProject" look="primary" busy={busy} onClick={() => void resume()}>Resume project</Button>}>
        {null}
      </Card>
    )
  }

  return (
    <Card title="Pause project" lead="Stops all access to the project. Nothing is lost, and you can resume it at any time."
      actions={<Button needs="pauseProject" look="danger" onClick={() => setAsks(true)}>Pause project</Button>}>
      {asks && (
        <Confirm title="Pause project" open action="Pause project" onClose={() => setAsks(false)} onSubmit={async () => {
          await read(api.POST('/projects/{projectUUID}/pause', { params }))
          await queries.invalidateQueries()
        }}>
          Applications, users and database clients of <b>{project.name}</b> are refused until you resume it. Work in
          progress is canceled. The data and files are kept.
        </Confirm>
      )}
    </Card>
  )
}

function DeleteCard({ project }: { project: Project }) {
  const navigate = useNavigate()
  const [asks, setAsks] = useState(false)
  const [purge, setPurge] = useState(false)
  const params = { path: { projectUUID: project.uuid } }

  async function restore() {
    try {
      await read(api.POST('/projects/{projectUUID}/restore', { params }))
      await queries.invalidateQueries()
    } catch (error) {
      toast(error instanceof Error ? error.message : String(error), 'danger')
    }
  }

  async function remove() {
    await read(api.DELETE('/projects/{projectUUID}', {
      params: { ...params, query: purge ? { purge: 'true' } : {} },
    }))
    await queries.invalidateQueries({ queryKey: ['projects'] })
    toast(purge ? `${project.name} is gone.` : `${project.name} is deleted.`, 'success',
      purge ? undefined : { text: 'Restore', run: () => void restore() })
    await navigate({ to: '/' })
  }

  return (
    <Card title="Delete project"
      lead="Its database, files, forms, users, keys and backups. Owners can restore it for a week, unless the instance has another time."
      actions={<Button needs="deleteProject" look="danger" onClick={() => setAsks(true)}>Delete project</Button>}>
      {asks && (
        <Confirm title="Delete project" open name={project.name} action={purge ? 'Purge project' : 'Delete project'}
          onClose={() => setAsks(false)} onSubmit={remove}>
          <Stack>
            <p>
              The database of <b>{project.name}</b>, its files, forms, users, keys and backups become inaccessible at once.{' '}
              {purge ? 'Nothing of it can be brought back.' : 'Owners can restore it for a week, unless the instance has another time. Then it is purged.'}
            </p>
            <CheckField label="Purge it now" checked={purge} onChange={(e) => setPurge(e.target.checked)}
              hint="Deletes everything at once, with the backups. This cannot be undone." />
          </Stack>
        </Confirm>
      )}
    </Card>
  )
}
