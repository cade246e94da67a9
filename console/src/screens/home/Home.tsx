import { useParams } from '@tanstack/react-router'
import { texts } from '#texts/home'
import { api, read } from '../../api/client'
import { Badge } from '../../components/Bits'
import { Button, ButtonLink } from '../../components/Button'
import { Card, Page } from '../../components/Page'
import { useMayRead } from '../../components/rights'
import { Failure } from '../../components/States'
import { toast } from '../../components/Toast'
import { queries } from '../../queries'
import { FailedRequests } from './FailedRequests'
import { Figures } from './Figures'
import { FirstSteps } from './FirstSteps'
import css from './Home.module.css'
import { LargestTables } from './LargestTables'
import { useProject } from './queries'
import { RequestsOverTime } from './RequestsOverTime'

/** The first screen of a project: how it is, and how to begin. */
export function Home() {
  const { project } = useParams({ strict: false }) as { project: string }
  const query = useProject(project)
  const mayRead = useMayRead('listRequests')

  if (query.data === undefined && query.error) {
    return <Failure error={query.error} retry={() => void query.refetch()} />
  }

  const content = query.data?.content
  const status = content?.status ?? 'active'
  const active = content?.status === 'active'

  return (
    <Page title={content?.name ?? '…'} lead={content?.description || '\u00a0'}
      actions={<>
        {status !== 'active' && <Badge tone="warning">{status}</Badge>}
        <ButtonLink to={`/projects/${project}/tables` as string}>{texts.openTables}</ButtonLink>
        <ButtonLink needs="runSQL" to={`/projects/${project}/sql` as string}>{texts.runSQL}</ButtonLink>
      </>}>
      {status === 'paused' ? <Paused project={project} /> : (
        <>
          <Figures project={project} enabled={active} />
          <FirstSteps project={project} enabled={active} />
          <RequestsOverTime project={project} enabled={active} />
          <div className={css.pair}>
            <LargestTables project={project} enabled={active} />
            {mayRead && <FailedRequests project={project} />}
          </div>
        </>
      )}
    </Page>
  )
}

function Paused({ project }: { project: string }) {
  async function resume() {
    try {
      await read(api.POST('/projects/{projectUUID}/resume', { params: { path: { projectUUID: project } } }))
      await queries.invalidateQueries()
    } catch (error) {
      toast(error instanceof Error ? error.message : String(error), 'danger')
    }
  }

  return (
    <Card title={texts.thisProjectIsPaused}
      lead={texts.itsDataAreKeptRequests}
      actions={<Button needs="resumeProject" look="primary" onClick={() => void resume()}>{texts.resumeProject}</Button>}>
      {null}
    </Card>
  )
}
