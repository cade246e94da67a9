import { useState } from 'react'
import { useNavigate, useParams } from '@tanstack/react-router'
import { useQuery } from '@tanstack/react-query'
import { texts } from '#texts/edgefunctions'
import { api, read, type Schemas } from '../../api/client'
import { Badge, Copyable, formatBytes, Time } from '../../components/Bits'
import { Button, ButtonLink } from '../../components/Button'
import { Details } from '../../components/Details'
import { Confirm } from '../../components/Dialog'
import { Card, Page, Row } from '../../components/Page'
import { useMayRead } from '../../components/rights'
import { Empty, Loaded } from '../../components/States'
import { Pager, Table } from '../../components/Table'
import { toast } from '../../components/Toast'
import { queries } from '../../queries'
import { versionText } from './call'
import { FunctionLog } from './FunctionLog'
import { TestCall } from './TestCall'

type EdgeFunctionInfo = Schemas['EdgeFunction']
type Version = Schemas['EdgeFunctionVersion']

/** One edge function: its address, a test call, its versions and its log. */
export function EdgeFunction() {
  const { project, edgeFunction: name } = useParams({ strict: false }) as { project: string; edgeFunction: string }
  const readsLog = useMayRead('listEdgeFunctionLog')
  const query = useQuery({
    queryKey: ['edge functions', project, 'one', name],
    queryFn: () => findFunction(project, name),
  })

  return (
    <Page title={name}
      actions={<ButtonLink to={`/projects/${project}/edge-functions` as string}>{texts.allEdgeFunctions}</ButtonLink>}>
      <Loaded query={query}>
        {(found) => found === null
          ? <Empty title={texts.noSuchFunction}>{texts.itWasDeletedOrHas}</Empty>
          : (
            <>
              <Overview project={project} of={found} />
              <TestCall project={project} of={found} />
              <Versions project={project} name={name} />
              {readsLog && <FunctionLog project={project} name={name} />}
            </>
          )}
      </Loaded>
    </Page>
  )
}

/** Returns a function by its name, or null: the API has only the list. */
async function findFunction(project: string, name: string): Promise<EdgeFunctionInfo | null> {
  for (let page = 1; ; page++) {
    const { content, metadata } = await read(api.GET('/projects/{projectUUID}/edge-functions', {
      params: { path: { projectUUID: project }, query: { page, limit: 100, sort: 'name' } },
    }))
    const found = content.find((f) => f.name === name)
    if (found !== undefined) return found
    if (page >= metadata.totalPages) return null
  }
}

/** Changes a function's version or callers. */
async function update(project: string, name: string, body: { version?: string; verify_jwt?: boolean }) {
  await read(api.PUT('/projects/{projectUUID}/edge-functions/{edgeFunction}/settings', {
    params: { path: { projectUUID: project, edgeFunction: name } }, body,
  }))
  await queries.invalidateQueries({ queryKey: ['edge functions', project] })
}

function Overview({ project, of }: { project: string; of: EdgeFunctionInfo }) {
  const navigate = useNavigate()
  const [asks, setAsks] = useState<'delete' | 'open'>()
  const close = () => setAsks(undefined)

  async function protect() {
    try {
      await update(project, of.name, { verify_jwt: true })
      toast(texts.callsNeedAKeyOr)
    } catch (error) {
      toast(error instanceof Error ? error.message : String(error), 'danger')
    }
  }

  return (
    <Card title={texts.function} actions={
      <Row>
        {of.verifyJwt
          ? <Button needs="updateEdgeFunction" onClick={() => setAsks('open')}>{texts.letAnybodyCallIt}</Button>
          : <Button needs="updateEdgeFunction" onClick={() => void protect()}>{texts.requireAKeyOrToken}</Button>}
        <Button needs="deleteEdgeFunction" look="danger" onClick={() => setAsks('delete')}>{texts.delete}</Button>
      </Row>
    }>
      <Details entries={[
        [texts.address, <Copyable label={texts.address2} value={`${location.origin}/projects/${project}/functions/v1/${of.name}`} />],
        [texts.callers, of.verifyJwt ? <Badge>{texts.needAKeyOrTokenOf}</Badge> : <Badge tone="warning">{texts.anybody}</Badge>],
        [texts.version, <code>{versionText(of.version)}</code>],
        [texts.size, formatBytes(of.size)],
        [texts.deployed, <Time at={of.updatedAt} />],
        [texts.created, <Time at={of.createdAt} />],
      ]} />
      {asks === 'open' && (
        <Confirm title={texts.letAnybodyCallIt} open action={texts.letAnybodyCallIt} onClose={close}
          onSubmit={() => update(project, of.name, { verify_jwt: false })}>
          <p>{texts.requestsReachYourCodeWithout}</p>
        </Confirm>
      )}
      {asks === 'delete' && (
        <Confirm title={texts.deleteEdgeFunction} open action={texts.deleteFunction} name={of.name} onClose={close}
          onSubmit={async () => {
            await read(api.DELETE('/projects/{projectUUID}/edge-functions/{edgeFunction}', {
              params: { path: { projectUUID: project, edgeFunction: of.name } },
            }))
            toast(texts.nameIsDeleted(of.name))
            await navigate({ to: `/projects/${project}/edge-functions` })
            await queries.invalidateQueries({ queryKey: ['edge functions', project] })
          }}>
          <p>{texts.theFunctionIsLostWith}</p>
        </Confirm>
      )}
    </Card>
  )
}

function Versions({ project, name }: { project: string; name: string }) {
  const [page, setPage] = useState(1)
  const [chosen, setChosen] = useState<Version>()
  const query = useQuery({
    queryKey: ['edge functions', project, 'versions', name, page],
    queryFn: () => read(api.GET('/projects/{projectUUID}/edge-functions/{edgeFunction}/versions', {
      params: { path: { projectUUID: project, edgeFunction: name }, query: { page, order: 'desc' } },
    })),
  })

  return (
    <Card title={texts.versions} lead={texts.theLastThe50}>
      <Loaded query={query} rows={2}>
        {({ content, metadata }) => (
          <>
            <Table label={texts.versions} rows={content} keyOf={(v) => v.version} columns={[
              { title: texts.version, cell: (v) => <code>{versionText(v.version)}</code> },
              { title: texts.size, align: 'right', cell: (v) => formatBytes(v.size), narrow: true },
              { title: texts.deployed, cell: (v) => <Time at={v.deployedAt} /> },
              { title: '', align: 'right', cell: (v) => v.current ? <Badge tone="success">{texts.current}</Badge> : (
                <Button needs="updateEdgeFunction" aria-label={texts.rollBackToVersion(versionText(v.version))}
                  onClick={() => setChosen(v)}>{texts.rollBack}</Button>
              ) },
            ]} />
            <Pager page={metadata.page} pages={metadata.totalPages} total={metadata.total} onPage={setPage} />
          </>
        )}
      </Loaded>
      {chosen && (
        <Confirm title={texts.rollBack} open action={texts.rollBack} onClose={() => setChosen(undefined)} onSubmit={async () => {
          await update(project, name, { version: chosen.version })
          toast(texts.answersFromTheNextProcess(versionText(chosen.version)))
        }}>
          <p>
            {texts.versionDeployedBecomesTheCurrent(<code>{versionText(chosen.version)}</code>, <Time at={chosen.deployedAt} />)}
          </p>
        </Confirm>
      )}
    </Card>
  )
}
