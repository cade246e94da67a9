import { useState } from 'react'
import { useParams } from '@tanstack/react-router'
import { useQuery } from '@tanstack/react-query'
import { api, inProject, read } from '../../api/client'
import { Badge, Time } from '../../components/Bits'
import { Button } from '../../components/Button'
import { Page } from '../../components/Page'
import { Empty, Loaded } from '../../components/States'
import { Pager, Table } from '../../components/Table'
import { Tabs } from '../../components/Tabs'
import { useURLState } from '../../url'
import { Apply } from './Apply'
import type { Applied, File } from './files'
import css from './Migrations.module.css'

const pageSize = 50

/** The migrations that the project has, and files to apply. */
export function Migrations() {
  const { project } = useParams({ strict: false }) as { project: string }
  const [tab, setTab] = useURLState('tab', 'applied')
  const [files, setFiles] = useState<File[]>([])

  return (
    <Page title="Migrations" lead="SQL that brought the database to its present form, in order." actions={
      tab === 'applied' && <Button needs="applyMigrations" look="primary" onClick={() => setTab('files')}>Apply migrations</Button>
    }>
      <Tabs label="Migrations" tabs={[
        { text: 'Applied', to: '.', search: {} as never, replace: true },
        { text: 'Files', to: '.', search: { tab: 'files' } as never, replace: true },
      ]} />
      {tab === 'files'
        ? <Apply project={project} files={files} onFiles={setFiles} />
        : <AppliedList project={project} onApply={() => setTab('files')} />}
    </Page>
  )
}

function AppliedList({ project, onApply }: { project: string; onApply: () => void }) {
  const [page, setPage] = useURLState('page', '1')
  const query = useQuery({
    queryKey: ['migrations', project, 'list', page],
    queryFn: () => read(api.GET('/migrations', {
      params: {
        header: inProject(project), query: { page: Number(page), limit: pageSize, sort: 'version', order: 'desc' },
      },
    })),
  })

  return (
    <Loaded query={query}>
      {({ content, metadata }) => content.length === 0 ? (
        <Empty title="No migration yet" action={<Button needs="applyMigrations" look="primary" onClick={onApply}>Apply migrations</Button>}>
          A migration is a file such as 20261127093000_add_books.sql. The project records which ones it has.
        </Empty>
      ) : (
        <>
          <Table label="Applied migrations" rows={content} keyOf={(m) => m.version} columns={[
            { title: 'Version', cell: (m) => <code className={css.wrap}>{m.version}</code> },
            { title: 'Name', cell: (m) => <span className={css.wrap}>{m.name}</span> },
            { title: 'State', cell: (m) => <StateBadge migration={m} /> },
            { title: 'Applied', narrow: true, cell: (m) => <Time at={m.appliedAt} /> },
            { title: 'Checksum', narrow: true, cell: (m) => <code title={m.checksum}>{m.checksum.slice(0, 12)}</code> },
          ]} />
          <Pager page={metadata.page} pages={metadata.totalPages} total={metadata.total}
            onPage={(n) => setPage(String(n))} />
        </>
      )}
    </Loaded>
  )
}

function StateBadge({ migration }: { migration: Applied }) {
  return migration.durationMs === null
    ? <Badge tone="danger">unfinished: it runs again</Badge>
    : <Badge tone="success">applied in {migration.durationMs.toFixed(0)} ms</Badge>
}
