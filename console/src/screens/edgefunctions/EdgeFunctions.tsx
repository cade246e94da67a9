import { Link, useNavigate } from '@tanstack/react-router'
import { useQuery } from '@tanstack/react-query'
import { texts } from '#texts/edgefunctions'
import { api, read } from '../../api/client'
import { Badge, Code, formatBytes, Time } from '../../components/Bits'
import { useProject } from '../../components/Filters'
import { Card, Page } from '../../components/Page'
import { useMayRead } from '../../components/rights'
import { SearchTabs } from '../../components/SearchTabs'
import { Loaded } from '../../components/States'
import { Pager, Table } from '../../components/Table'
import { useURLState } from '../../url'
import { FunctionLog } from './FunctionLog'
import { FunctionSecrets } from './FunctionSecrets'
import { versionText } from './call'

/** Code of the project that the server runs. */
export function EdgeFunctions() {
  const project = useProject()
  const [tab] = useURLState('tab', 'functions')
  const readsLog = useMayRead('listEdgeFunctionLog')
  const readsSecrets = useMayRead('listEdgeFunctionSecrets')
  const tabs = [
    { value: 'functions', text: texts.functions },
    ...(readsLog ? [{ value: 'log', text: texts.log }] : []),
    ...(readsSecrets ? [{ value: 'secrets', text: texts.secrets }] : []),
  ]

  return (
    <Page title={texts.edgeFunctions} lead={texts.typeScriptAndJavaScriptOfYours}>
      <SearchTabs label={texts.edgeFunctions} current={tab} tabs={tabs} />
      {tab === 'log' && readsLog ? <FunctionLog project={project} />
        : tab === 'secrets' && readsSecrets ? <FunctionSecrets project={project} />
        : <FunctionList project={project} />}
    </Page>
  )
}

function FunctionList({ project }: { project: string }) {
  const navigate = useNavigate()
  const [page, setPage] = useURLState('page', '1')
  const query = useQuery({
    queryKey: ['edge functions', project, page],
    queryFn: () => read(api.GET('/projects/{projectUUID}/edge-functions', {
      params: { path: { projectUUID: project }, query: { page: Number(page) || 1, sort: 'name' } },
    })),
  })
  const address = (name: string) => `/projects/${project}/edge-functions/${encodeURIComponent(name)}`

  return (
    <Loaded query={query}>
      {({ content, metadata }) => content.length === 0 ? (
        <Card title={texts.noEdgeFunctionYet} lead={texts.writeOneInSupabaseFunctions}>
          <Code label={texts.theFunction} text={texts.denoServeNewResponseHello} />
          <Code label={texts.theCommand} text={texts.socleFunctionsDeployHello} />
        </Card>
      ) : (
        <>
          <Table label={texts.edgeFunctions} rows={content} keyOf={(f) => f.name}
            onOpen={(f) => void navigate({ to: address(f.name) })} columns={[
              { title: texts.name, cell: (f) => <Link to={address(f.name) as string}>{f.name}</Link> },
              { title: texts.callers, cell: (f) => f.verifyJwt ? <Badge>{texts.needAKeyOrToken}</Badge> : <Badge tone="warning">{texts.anybody}</Badge> },
              { title: texts.version, cell: (f) => <code>{versionText(f.version)}</code>, narrow: true },
              { title: texts.size, align: 'right', cell: (f) => formatBytes(f.size), narrow: true },
              { title: texts.deployed, cell: (f) => <Time at={f.updatedAt} /> },
            ]} />
          <Pager page={metadata.page} pages={metadata.totalPages} total={metadata.total} onPage={(n) => setPage(String(n))} />
        </>
      )}
    </Loaded>
  )
}
