import { Link, useNavigate } from '@tanstack/react-router'
import { useQuery } from '@tanstack/react-query'
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
    { value: 'functions', text: 'Functions' },
    ...(readsLog ? [{ value: 'log', text: 'Log' }] : []),
    ...(readsSecrets ? [{ value: 'secrets', text: 'Secrets' }] : []),
  ]

  return (
    <Page title="Edge functions" lead="TypeScript and JavaScript of yours that the server runs, at an address of its own each.">
      <SearchTabs label="Edge functions" current={tab} tabs={tabs} />
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
        <Card title="No edge function yet" lead="Write one in supabase/functions/hello/index.ts, then deploy it from your machine:">
          <Code label="the function" text={"Deno.serve(() => new Response('hello'))"} />
          <Code label="the command" text="socle functions deploy hello" />
        </Card>
      ) : (
        <>
          <Table label="Edge functions" rows={content} keyOf={(f) => f.name}
            onOpen={(f) => void navigate({ to: address(f.name) })} columns={[
              { title: 'Name', cell: (f) => <Link to={address(f.name) as string}>{f.name}</Link> },
              { title: 'Callers', cell: (f) => f.verifyJwt ? <Badge>need a key or token</Badge> : <Badge tone="warning">anybody</Badge> },
              { title: 'Version', cell: (f) => <code>{versionText(f.version)}</code>, narrow: true },
              { title: 'Size', align: 'right', cell: (f) => formatBytes(f.size), narrow: true },
              { title: 'Deployed', cell: (f) => <Time at={f.updatedAt} /> },
            ]} />
          <Pager page={metadata.page} pages={metadata.totalPages} total={metadata.total} onPage={(n) => setPage(String(n))} />
        </>
      )}
    </Loaded>
  )
}
