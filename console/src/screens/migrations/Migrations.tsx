import { useState } from 'react'
import { useParams } from '@tanstack/react-router'
import { useQuery } from '@tanstack/react-query'
import { texts } from '#texts/migrations'
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
    <Page title={texts.migrations} lead={texts.sqlThatBroughtTheDatabase} actions={
      tab === 'applied' && <Button needs="applyMigrations" look="primary" onClick={() => setTab('files')}>{texts.applyMigrations}</Button>
    }>
      <Tabs label={texts.migrations} tabs={[
        { text: texts.applied, to: '.', search: {} as never, replace: true },
        { text: texts.files2, to: '.', search: { tab: 'files' } as never, replace: true },
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
        <Empty title={texts.noMigrationYet} action={<Button needs="applyMigrations" look="primary" onClick={onApply}>{texts.applyMigrations}</Button>}>
          {texts.aMigrationIsAFile}
        </Empty>
      ) : (
        <>
          <Table label={texts.appliedMigrations} rows={content} keyOf={(m) => m.version} columns={[
            { title: texts.version, cell: (m) => <code className={css.wrap}>{m.version}</code> },
            { title: texts.name, cell: (m) => <span className={css.wrap}>{m.name}</span> },
            { title: texts.state, cell: (m) => <StateBadge migration={m} /> },
            { title: texts.applied, narrow: true, cell: (m) => <Time at={m.appliedAt} /> },
            { title: texts.checksum, narrow: true, cell: (m) => <code title={m.checksum}>{m.checksum.slice(0, 12)}</code> },
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
    ? <Badge tone="danger">{texts.unfinishedItRunsAgain}</Badge>
    : <Badge tone="success">{texts.appliedInDurationMsMs(migration.durationMs.toFixed(0))}</Badge>
}
