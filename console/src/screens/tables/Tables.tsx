import { useState, type ReactNode } from 'react'
import { Link } from '@tanstack/react-router'
import { useParams, useURLState } from '../../url'
import { Badge } from '../../components/Bits'
import { Button } from '../../components/Button'
import { SelectField, TextField } from '../../components/Field'
import { ImportDialog } from '../../components/ImportDialog'
import { Page, Row } from '../../components/Page'
import { Empty, Loaded } from '../../components/States'
import { Pager, Table } from '../../components/Table'
import type { Entry } from '../../components/tableList'
import { CreateTable } from './CreateTable'
import { useSecurity, useTables, useViews } from './queries'
import { TableMenu } from './TableMenu'
import css from './Tables.module.css'

const shown = 25

/** The tables and views of a project. */
export function Tables() {
  const { project = '' } = useParams({ strict: false }) as { project?: string }
  const [search, setSearch] = useURLState('search', '')
  const [schema, setSchema] = useURLState('schema', '')
  const [page, setPage] = useURLState('page', '1')
  const [dialog, setDialog] = useState<'create' | 'import' | null>(null)
  const query = useTables(project)
  const views = useViews(project, query.data)

  const actions = (
    <>
      <Button needs="importTable" onClick={() => setDialog('import')}>Import a file</Button>
      <Button needs="createTable" look="primary" onClick={() => setDialog('create')}>New table</Button>
    </>
  )

  return (
    <Page title="Tables" lead="Look at rows, change them, and shape the database." actions={actions}>
      <Loaded query={query}>
        {(tables) => {
          const all = [...tables, ...(views.data ?? [])]
          if (all.length === 0) return <NoTable actions={actions} />

          const schemas = [...new Set(all.map((t) => t.schema))].sort()
          const wanted = search.toLowerCase()
          const found = all.filter((t) => (schema === '' || t.schema === schema) && t.fullName.toLowerCase().includes(wanted))
          const pages = Math.max(1, Math.ceil(found.length / shown))
          const number = Math.min(Math.max(1, Number(page) || 1), pages)

          return (
            <>
              <div className={css.filters}>
                <TextField label="Search by name" type="search" value={search} onChange={(e) => setSearch(e.target.value)} />
                {schemas.length > 1 && (
                  <SelectField label="Schema" value={schema} onChange={(e) => setSchema(e.target.value)}>
                    <option value="">All schemas</option>
                    {schemas.map((s) => <option key={s}>{s}</option>)}
                  </SelectField>
                )}
              </div>
              {found.length === 0
                ? <Empty title="No table has this name" action={<Button onClick={() => setSearch('')}>Clear search</Button>} />
                : <List project={project} entries={found.slice((number - 1) * shown, number * shown)} />}
              <Pager page={number} pages={pages} total={found.length} onPage={(n) => setPage(String(n))} />
            </>
          )
        }}
      </Loaded>
      {dialog === 'create' && <CreateTable project={project} onClose={() => setDialog(null)} />}
      {dialog === 'import' && <ImportDialog project={project} onClose={() => setDialog(null)} />}
    </Page>
  )
}

function NoTable({ actions }: { actions: ReactNode }) {
  return (
    <Empty title="No table yet" action={<Row>{actions}</Row>}>
      Create a table here, import a CSV, Excel or JSON file, or run your own SQL.
    </Empty>
  )
}

function List({ project, entries }: { project: string; entries: Entry[] }) {
  const address = (t: Entry) => `/projects/${project}/tables/${encodeURIComponent(t.fullName)}`

  return (
    <Table label="Tables" rows={entries} keyOf={(t) => t.fullName} columns={[
      { title: 'Name', cell: (t) => <Link to={address(t) as string} className={css.name}>{t.name}</Link> },
      { title: 'Schema', cell: (t) => <code>{t.schema}</code>, narrow: true },
      { title: 'Rows', cell: (t) => (t.isView ? '' : `~${t.rows.toLocaleString()}`), align: 'right' },
      { title: 'Size', cell: (t) => t.size, align: 'right', narrow: true },
      { title: 'Access', cell: (t) => <Security project={project} entry={t} />, narrow: true },
      { title: 'Actions', cell: (t) => <TableMenu project={project} entry={t} />, align: 'right' },
    ]} />
  )
}

function Security({ project, entry }: { project: string; entry: Entry }) {
  const { data, error } = useSecurity(project, entry)
  if (entry.isView) return <Badge>view</Badge>
  if (error !== null) return <span title={error.message}>unknown</span>
  if (data === undefined) return <span className={css.waiting}>…</span>

  return data.metadata.rowLevelSecurity
    ? <Badge tone="success">row security on</Badge>
    : <Badge tone="warning">row security off</Badge>
}
