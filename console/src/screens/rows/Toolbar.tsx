import { useState } from 'react'
import { texts } from '#texts/rows'
import { Button, ButtonLink } from '../../components/Button'
import { exportTable } from '../../components/exportTable'
import { FollowingBadge } from '../../components/FollowingBadge'
import { ImportDialog } from '../../components/ImportDialog'
import { Menu } from '../../components/Menu'
import { SeeAs } from '../../components/SeeAs'
import { toast } from '../../components/Toast'
import { ColumnsDialog } from './ColumnsDialog'
import { FilterBar } from './FilterBar'
import { InsertRow } from './InsertRow'
import type { Live } from './useLive'
import type { useRowsView } from './useRowsView'
import type { Target } from './writes'
import css from './Toolbar.module.css'

/** Filters, columns and the caller of the grid. */
export function Toolbar({ target, state, live, filters, onFilters }: {
  target: Target
  state: ReturnType<typeof useRowsView>
  live: Live
  filters: boolean
  onFilters: (open: boolean) => void
}) {
  const [columns, setColumns] = useState(false)
  const [inserts, setInserts] = useState(false)
  const { relation, project } = target
  const count = state.view.filters.length
  const hidden = state.layout.hidden.filter((name) => relation.columns.some((c) => c.name === name)).length

  return (
    <>
      <div className={css.bar} role="toolbar" aria-label={texts.rows}>
        <Button aria-expanded={filters} onClick={() => onFilters(!filters)}>{count > 0 ? texts.filtersCount(count) : texts.filter}</Button>
        <Button onClick={() => setColumns(true)}>{hidden > 0 ? texts.columnsHidden(hidden) : texts.columns}</Button>
        <SeeAs project={project} value={state.as} onChange={state.setAs} />
        {!relation.isView && <Button aria-pressed={live.isOn} onClick={live.toggle}>{live.isOn ? texts.liveOn : texts.live}</Button>}
        {live.isOn && <span role="status"><FollowingBadge state={live.state} /></span>}
        <span className={css.space} />
        {relation.canInsert && <Button look="primary" onClick={() => setInserts(true)}>{texts.insertRow}</Button>}
      </div>
      {filters && (
        <FilterBar key={state.filter} columns={relation.columns} value={state.filter} onApply={state.setFilter}
          onClose={() => onFilters(false)} />
      )}
      {columns && (
        <ColumnsDialog columns={relation.columns} layout={state.layout} onChange={state.setLayout} onClose={() => setColumns(false)} />
      )}
      {inserts && <InsertRow target={target} onClose={() => setInserts(false)} />}
    </>
  )
}

/** Links and actions of the whole table. */
export function TableActions({ target: { project, relation } }: { target: Target }) {
  const [imports, setImports] = useState(false)
  if (relation.isView) return null

  const download = (format: 'csv' | 'tsv' | 'jsonl') => void exportTable(project, relation.fullName, format).catch(
    (error: unknown) => toast(texts.theExportEndedEarlyError(error instanceof Error ? error.message : String(error)), 'danger'))

  return (
    <>
      <ButtonLink to={`/projects/${project}/tables/${encodeURIComponent(relation.fullName)}/structure` as string}>{texts.structure}</ButtonLink>
      <Button needs="importRows" onClick={() => setImports(true)}>{texts.import}</Button>
      <Menu label={texts.export} trigger={texts.export2} items={[
        { text: texts.exportAsCSV, needs: 'exportTable', onSelect: () => download('csv') },
        { text: texts.exportAsTSV, needs: 'exportTable', onSelect: () => download('tsv') },
        { text: texts.exportAsJSONLines, needs: 'exportTable', onSelect: () => download('jsonl') },
      ]} />
      {imports && <ImportDialog project={project} table={relation.fullName} onClose={() => setImports(false)} />}
    </>
  )
}
