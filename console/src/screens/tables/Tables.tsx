import { useState, type ReactNode } from 'react'
import { Link } from '@tanstack/react-router'
import { texts } from '#texts/tables'
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
      <Button needs="importTable" onClick={() => setDialog('import')}>{texts.importAFile}</Button>
      <Button needs="createTable" look="primary" onClick={() => setDialog('create')}>{texts.newTable}</Button>
    </>
  )

  return (
    <Page title={texts.tables} lead={texts.lookAtRowsChangeThem} actions={actions}>
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
                <TextField label={texts.searchByName} type="search" value={search} onChange={(e) => setSearch(e.target.value)} />
                {schemas.length > 1 && (
                  <SelectField label={texts.schema} value={schema} onChange={(e) => setSchema(e.target.value)}>
                    <option value="">{texts.allSchemas}</option>
                    {schemas.map((s) => <option key={s}>{s}</option>)}
                  </SelectField>
                )}
              </div>
              {found.length === 0
                ? <Empty title={texts.noTableHasThisName} action={<Button onClick={() => setSearch('')}>{texts.clearSearch}</Button>} />
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
    <Empty title={texts.noTableYet} action={<Row>{actions}</Row>}>
      {texts.createATableHereImport}
    </Empty>
  )
}

function List({ project, entries }: { project: string; entries: Entry[] }) {
  const address = (t: Entry) => `/projects/${project}/tables/${encodeURIComponent(t.fullName)}`

  return (
    <Table label={texts.tables} rows={entries} keyOf={(t) => t.fullName} columns={[
      { title: texts.name, cell: (t) => <Link to={address(t) as string} className={css.name}>{t.name}</Link> },
      { title: texts.schema, cell: (t) => <code>{t.schema}</code>, narrow: true },
      { title: texts.rows, cell: (t) => (t.isView ? '' : `~${t.rows.toLocaleString()}`), align: 'right' },
      { title: texts.size, cell: (t) => t.size, align: 'right', narrow: true },
      { title: texts.access, cell: (t) => <Security project={project} entry={t} />, narrow: true },
      { title: texts.actions, cell: (t) => <TableMenu project={project} entry={t} />, align: 'right' },
    ]} />
  )
}

function Security({ project, entry }: { project: string; entry: Entry }) {
  const { data, error } = useSecurity(project, entry)
  if (entry.isView) return <Badge>{texts.view}</Badge>
  if (error !== null) return <span title={error.message}>{texts.unknown}</span>
  if (data === undefined) return <span className={css.waiting}>…</span>

  return data.metadata.rowLevelSecurity
    ? <Badge tone="success">{texts.rowSecurityOn}</Badge>
    : <Badge tone="warning">{texts.rowSecurityOff}</Badge>
}
