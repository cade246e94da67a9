import { useState } from 'react'
import { useNavigate } from '@tanstack/react-router'
import { useQuery } from '@tanstack/react-query'
import { texts } from '#texts/settings'
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
      <Card title={texts.resumeProject} lead={texts.theProjectIsPausedApplications}
        actions={<Button needs="resumeProject" look="primary" busy={busy} onClick={() => void resume()}>{texts.resumeProject}</Button>}>
        {null}
      </Card>
    )
  }

  return (
    <Card title={texts.pauseProject} lead={texts.stopsAllAccessToThe}
      actions={<Button needs="pauseProject" look="danger" onClick={() => setAsks(true)}>{texts.pauseProject}</Button>}>
      {asks && (
        <Confirm title={texts.pauseProject} open action={texts.pauseProject} onClose={() => setAsks(false)} onSubmit={async () => {
          await read(api.POST('/projects/{projectUUID}/pause', { params }))
          await queries.invalidateQueries()
        }}>
          {texts.applicationsUsersAndDatabaseClients(<b>{project.name}</b>)}
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
    toast(purge ? texts.nameIsGone(project.name) : texts.nameIsDeleted(project.name), 'success',
      purge ? undefined : { text: texts.restore, run: () => void restore() })
    await navigate({ to: '/' })
  }

  return (
    <Card title={texts.deleteProject}
      lead={texts.itsDatabaseFilesFormsUsers}
      actions={<Button needs="deleteProject" look="danger" onClick={() => setAsks(true)}>{texts.deleteProject}</Button>}>
      {asks && (
        <Confirm title={texts.deleteProject} open name={project.name} action={purge ? texts.purgeProject : texts.deleteProject}
          onClose={() => setAsks(false)} onSubmit={remove}>
          <Stack>
            <p>
              {texts.theDatabaseOfItsFiles(<b>{project.name}</b>, purge ? texts.nothingOfItCanBe : texts.ownersCanRestoreItFor)}
            </p>
            <CheckField label={texts.purgeItNow} checked={purge} onChange={(e) => setPurge(e.target.checked)}
              hint={texts.deletesEverythingAtOnceWith} />
          </Stack>
        </Confirm>
      )}
    </Card>
  )
}
