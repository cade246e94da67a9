import { useQuery } from '@tanstack/react-query'
import { texts } from '#texts/structure'
import { failureOf } from '../../api/failure'
import { send } from '../../api/client'
import { ButtonLink } from '../../components/Button'
import { parseExact, textOf, type Exact } from '../../components/exact'
import { Failure, Skeleton } from '../../components/States'
import { Table } from '../../components/Table'
import { tablePath } from '../../components/tableList'
import type { TableRef } from './table'
import css from './Structure.module.css'
import look from './Access.module.css'

const [shownRows, shownColumns] = [5, 6]
const longest = 80 // characters of a cell

interface Answer {
  rows: Record<string, Exact>[]
  total: number | null
}

/** What a caller reads from a table, as the rows API answers it. */
export function ReadAs({ table, as }: { table: TableRef; as: string }) {
  const { project, schema, name } = table
  const query = useQuery({
    queryKey: ['rows', project, name, 'read as', as],
    retry: false,
    queryFn: () => readAs(project, schema, name.slice(schema.length + 1), as),
  })
  const search = as === 'service_role' ? {} : { as }
  const link = <ButtonLink to={tablePath(project, name) as string} search={search as never}>{texts.openRowsAsThisCaller}</ButtonLink>

  if (query.isPending) return <Skeleton rows={3} />
  if (query.error !== null) {
    return (
      <section aria-label={texts.answer} className={look.answer}>
        <p>{texts.theCallerReadsNothingThe}</p>
        <Failure error={query.error} retry={() => void query.refetch()} title={texts.refused} />
      </section>
    )
  }

  const { rows, total } = query.data
  const columns = Object.keys(rows[0] ?? {}).slice(0, shownColumns)
  return (
    <section aria-label={texts.answer} className={look.answer}>
      <p>{rows.length === 0 ? texts.theCallerReadsNoRow : texts.theCallerReadsRows(countText(rows, total))}</p>
      {rows.length > 0 && (
        <Table label={texts.rowsThatTheCallerReads} rows={rows} keyOf={(row) => JSON.stringify(row)} columns={columns.map((c) => ({
          title: c, cell: (row: Record<string, Exact>) => <span className={css.wrap}>{(textOf(row[c] ?? null) ?? 'null').slice(0, longest)}</span>,
        }))} />
      )}
      <div>{link}</div>
    </section>
  )
}

function countText(rows: unknown[], total: number | null): string {
  const n = total ?? rows.length
  return `${total === null ? texts.atLeast : ''}${n === 1 ? texts.oneRow : texts.countRows(n.toLocaleString())}${n > rows.length ? texts.ofWhichTheseAreThe(rows.length) : ''}`
}

async function readAs(project: string, schema: string, name: string, as: string): Promise<Answer> {
  const path = `/projects/${project}/rest/v1/${encodeURIComponent(name)}?limit=${shownRows}`
  const response = await send(location.origin + path, { headers: {
    ...(schema !== 'public' && { 'Accept-Profile': schema }), 'X-Socle-As': as, Prefer: 'count=estimated',
  } })
  const text = await response.text()
  if (!response.ok) throw failureOf(response, parsed(text))

  const total = /\/(\d+)$/.exec(response.headers.get('Content-Range') ?? '')?.[1]
  return { rows: parseExact(text) as Record<string, Exact>[], total: total === undefined ? null : Number(total) }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}
