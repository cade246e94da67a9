import { useRef, useState } from 'react'
import { Badge, Time } from '../../components/Bits'
import { Button } from '../../components/Button'
import { jsonOf, parseExact } from '../../components/exact'
import { SelectField } from '../../components/Field'
import { FilterBar, FilterField, useFilters } from '../../components/Filters'
import { FollowingBadge } from '../../components/FollowingBadge'
import { Card, Row } from '../../components/Page'
import { SeeAs } from '../../components/SeeAs'
import { Empty } from '../../components/States'
import type { Change } from '../../components/stream'
import { useChanges } from '../../components/useChanges'
import { useWatched } from './queries'
import css from './Realtime.module.css'

const kept = 200 // changes
const kinds = { '': 'All', INSERT: 'Insert', UPDATE: 'Update', DELETE: 'Delete', TRUNCATE: 'Truncate' }
const tones = { INSERT: 'success', UPDATE: 'neutral', DELETE: 'danger', TRUNCATE: 'danger' } as const

type Entry = { id: number; change: Change } | { id: number; gap: true }

/** Changes as they happen, the newest first. */
export function ChangeLog({ project }: { project: string }) {
  const [{ table, event, filter, as, paused }, setFilters] = useFilters('table', 'event', 'filter', 'as', 'paused')
  const [entries, setEntries] = useState<Entry[]>([])
  const lastID = useRef(0)
  const followed = useWatched(project).data?.filter((t) => t.isFollowed)
  const [schema, name] = table === '' ? ['public', ''] : [table.slice(0, table.indexOf('.')), table.slice(table.indexOf('.') + 1)]

  const add = (entry: { change: Change } | { gap: true }) =>
    setEntries((former) => [{ id: ++lastID.current, ...entry }, ...former].slice(0, kept))
  const state = useChanges(project, paused === '' ? { schema, table: name, event, filter, as } : null, {
    change: (change) => add({ change }),
    gap: () => add({ gap: true }),
  })

  return (
    <>
      <FilterBar>
        <SelectField label="Table" value={table} onChange={(e) => setFilters({ table: e.target.value })}>
          <option value="">All followed tables in public</option>
          {[...new Set([...(followed ?? []).map((t) => t.fullName), ...(table === '' ? [] : [table])])].map((t) => <option key={t}>{t}</option>)}
        </SelectField>
        <SelectField label="Change" value={event} onChange={(e) => setFilters({ event: e.target.value })}>
          {Object.entries(kinds).map(([value, text]) => <option key={value} value={value}>{text}</option>)}
        </SelectField>
        {table !== '' && (
          <FilterField label="Condition" value={filter} placeholder="status=eq.paid" onChange={(next) => setFilters({ filter: next.trim() })} />
        )}
        <SeeAs project={project} value={as} onChange={(next) => setFilters({ as: next })} />
      </FilterBar>
      <Card title="Changes" lead={`The last ${kept} since you opened this page.`} actions={
        <Row>
          <span role="status"><FollowingBadge state={state} /></span>
          <Button onClick={() => setFilters({ paused: paused === '' ? '1' : '' })}>{paused === '' ? 'Pause' : 'Continue'}</Button>
          <Button disabled={entries.length === 0} onClick={() => setEntries([])}>Clear</Button>
        </Row>
      }>
        {entries.length === 0 ? (
          <Empty title={followed?.length === 0 ? 'No table is followed' : 'No change yet'}>
            {followed?.length === 0 ? 'Switch a table on under Tables.' : 'Change a row in another tab or in your application: it appears here at once.'}
          </Empty>
        ) : (
          <ol className={css.log} aria-label="Changes, the newest first">
            {entries.map((e) => <li key={e.id}>{'gap' in e ? <Gap /> : <OneChange change={e.change} />}</li>)}
          </ol>
        )}
      </Card>
    </>
  )
}

function Gap() {
  return <p><Badge tone="warning">gap</Badge> Changes before this one are no longer kept: read the rows again.</p>
}

function OneChange({ change: c }: { change: Change }) {
  return (
    <details>
      <summary>
        <Badge tone={tones[c.kind as keyof typeof tones] ?? 'neutral'}>{c.kind.toLowerCase()}</Badge>
        <b>{c.schema === 'public' ? c.table : `${c.schema}.${c.table}`}</b>
        <code className={css.row}>{c.record || c.old}</code>
        <Time at={c.at} />
      </summary>
      {c.cut && <p>Large columns are left out.</p>}
      {c.record !== '' && <Value title="Row" json={c.record} />}
      {c.old !== '' && <Value title="Before" json={c.old} />}
    </details>
  )
}

function Value({ title, json }: { title: string; json: string }) {
  return (
    <>
      <h3>{title}</h3>
      <pre className={css.value} tabIndex={0} aria-label={title}>{jsonOf(parseExact(json), '\n')}</pre>
    </>
  )
}
