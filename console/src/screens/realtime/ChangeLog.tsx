import { useRef, useState } from 'react'
import { texts } from '#texts/realtime'
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
const kinds = { '': texts.all, INSERT: texts.insert, UPDATE: texts.update, DELETE: texts.delete, TRUNCATE: texts.truncate }
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
        <SelectField label={texts.table} value={table} onChange={(e) => setFilters({ table: e.target.value })}>
          <option value="">{texts.allFollowedTablesInPublic}</option>
          {[...new Set([...(followed ?? []).map((t) => t.fullName), ...(table === '' ? [] : [table])])].map((t) => <option key={t}>{t}</option>)}
        </SelectField>
        <SelectField label={texts.change} value={event} onChange={(e) => setFilters({ event: e.target.value })}>
          {Object.entries(kinds).map(([value, text]) => <option key={value} value={value}>{text}</option>)}
        </SelectField>
        {table !== '' && (
          <FilterField label={texts.condition} value={filter} placeholder={texts.statusEqPaid} onChange={(next) => setFilters({ filter: next.trim() })} />
        )}
        <SeeAs project={project} value={as} onChange={(next) => setFilters({ as: next })} />
      </FilterBar>
      <Card title={texts.changes} lead={texts.theLastSinceYouOpened(kept)} actions={
        <Row>
          <span role="status"><FollowingBadge state={state} /></span>
          <Button onClick={() => setFilters({ paused: paused === '' ? '1' : '' })}>{paused === '' ? texts.pause : texts.continue}</Button>
          <Button disabled={entries.length === 0} onClick={() => setEntries([])}>{texts.clear}</Button>
        </Row>
      }>
        {entries.length === 0 ? (
          <Empty title={followed?.length === 0 ? texts.noTableIsFollowed : texts.noChangeYet}>
            {followed?.length === 0 ? texts.switchATableOnUnder : texts.changeARowInAnother}
          </Empty>
        ) : (
          <ol className={css.log} aria-label={texts.changesTheNewestFirst}>
            {entries.map((e) => <li key={e.id}>{'gap' in e ? <Gap /> : <OneChange change={e.change} />}</li>)}
          </ol>
        )}
      </Card>
    </>
  )
}

function Gap() {
  return <p><Badge tone="warning">{texts.gap}</Badge>{' '}{texts.changesBeforeThisOneAre}</p>
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
      {c.cut && <p>{texts.largeColumnsAreLeftOut}</p>}
      {c.record !== '' && <Value title={texts.row} json={c.record} />}
      {c.old !== '' && <Value title={texts.before} json={c.old} />}
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
