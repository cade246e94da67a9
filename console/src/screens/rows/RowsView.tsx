import { useRef, useState } from 'react'
import { texts } from '#texts/rows'
import { Badge } from '../../components/Bits'
import { Page } from '../../components/Page'
import { toast } from '../../components/Toast'
import { CellEditor, type Step } from './CellEditor'
import { draftOf, type Draft } from './edit'
import { replaceCached, useEdits } from './edits'
import { Grid } from './Grid'
import { GridNote } from './GridNote'
import { HeadCell } from './HeadCell'
import { isNull, textOf } from './json'
import type { Place } from './keys'
import { menuOf } from './columnMenu'
import { Peek } from './Peek'
import type { Relation } from './relation'
import { RowSheet } from './RowSheet'
import { SelectionBar } from './SelectionBar'
import { StatusBar } from './StatusBar'
import { TableActions, Toolbar } from './Toolbar'
import type { Column, Reference } from './types'
import { useLive } from './useLive'
import { useRowsView, windowRows } from './useRowsView'
import { useSelection } from './useSelection'
import css from './RowsView.module.css'

interface Editing {
  place: Place
  initial: Draft
  failure: string
  column: Column
}

export function RowsView({ project, relation }: { project: string; relation: Relation }) {
  const state = useRowsView(project, relation)
  const { view, pages, arranged, as, from } = state
  const target = { project, relation, as }
  const live = useLive(project, relation, as)
  const columns = [...arranged.pinned, ...arranged.free]
  const viewID = JSON.stringify([view.filters, view.sort, view.as, from])

  const [place, setPlace] = useState<Place | null>(null)
  const [editing, setEditing] = useState<Editing | null>(null)
  const [peek, setPeek] = useState<{ reference: Reference; value: string } | null>(null)
  const [openIndex, setOpenIndex] = useState<number | null>(null) // of a row without a key
  const [openKey, setOpenKey] = state.open
  const [filters, setFilters] = useState(state.filter !== '')
  const selection = useSelection(relation, pages, viewID)
  const editingNow = useRef(false)
  editingNow.current = editing !== null

  const edits = useEdits(target, view, (index, column, { draft, message }) => {
    const at = columns.findIndex((c) => c.name === column.name)
    if (editingNow.current || at < 0) return false
    setEditing({ place: { index, column: at }, column, initial: draft, failure: message })
    return true
  })

  function edit(at: Place, typed?: string) {
    const row = pages.rowAt(at.index)
    const column = columns[at.column]
    if (row === undefined || column === undefined) return
    if (!relation.canUpdate) return toast(whyReadOnly(relation), 'danger')

    setPlace(at)
    const failed = edits.unsaved(at.index, column.name)
    const begins = typed !== undefined && column.kind !== 'boolean' && column.kind !== 'enum'
    const initial = failed?.draft ?? (begins ? { mode: 'value' as const, text: typed } : draftOf(row[column.name], column.kind))
    setEditing({ place: at, column, initial, failure: failed?.message ?? '' })
  }

  function close(next: Place | null) {
    setEditing(null)
    if (next) setPlace(next)
    requestAnimationFrame(() => document.querySelector<HTMLElement>('[data-grid]')?.focus({ preventScroll: true }))
  }

  function save(draft: Draft, step: Step) {
    if (editing === null) return
    const { place: at, column } = editing
    const row = pages.rowAt(at.index)
    close(stepped(at, step, columns.length, pages.count))
    if (row !== undefined) void edits.save(at.index, row, column, draft)
  }

  function open(index: number) {
    const row = pages.rowAt(index)
    if (row === undefined) return
    if (relation.key.length === 0) setOpenIndex(index)
    else setOpenKey(Object.fromEntries(relation.key.map((k) => [k, textOf(row[k] ?? 'null')])))
  }

  function peekAt(at: Place) {
    const raw = pages.rowAt(at.index)?.[columns[at.column]?.name ?? '']
    const reference = columns[at.column]?.reference
    if (reference && raw !== undefined && !isNull(raw)) setPeek({ reference, value: textOf(raw) })
  }

  const showReference = (column: Column, value: string) => column.reference && setPeek({ reference: column.reference, value })
  const openRow = openKey !== null
    ? Object.fromEntries(Object.entries(openKey).map(([k, v]) => [k, JSON.stringify(v)]))
    : openIndex !== null ? pages.rowAt(openIndex) : undefined

  return (
    <Page full title={relation.name} lead={<Lead relation={relation} />} actions={<TableActions target={target} />}>
      <Toolbar target={target} state={state} live={live} filters={filters} onFilters={setFilters} />
      {selection.rows.length > 0 && <SelectionBar target={target} selection={selection} columns={columns} />}
      <Grid key={viewID} id="cell" label={texts.rowsOfName(relation.name)} arranged={arranged} pages={pages} from={from}
        count={Math.min(Math.max(0, pages.count - from), windowRows)} onRange={state.onRange} place={place}
        isSelected={selection.isSelected} allSelected={selection.allSelected} failedOf={edits.failedOf} savingOf={edits.savingOf}
        editable={relation.canUpdate} onPlace={setPlace} onEdit={edit} onOpen={open} onPeek={peekAt} onToggle={selection.toggle}
        onToggleAll={selection.toggleAll} onCopy={(at) => copyCell(pages.rowAt(at.index)?.[columns[at.column]?.name ?? ''])}
        sortOf={(c) => directionOf(view.sort, c)}
        head={(c) => (
          <HeadCell column={c} sort={directionOf(view.sort, c)} width={arranged.widthOf(c)}
            place={view.sort.length > 1 ? view.sort.findIndex((s) => s.column === c.name) + 1 : 0}
            onSort={(adds) => state.sortBy(c.name, adds)} items={menuOf(c, relation.columns, state, () => setFilters(true))}
            onWidth={(width) => state.setLayout({ widths: { ...state.layout.widths, [c.name]: width } })} />
        )}>
        <GridNote pages={pages} relation={relation} view={view} onClear={() => state.setFilter('')} />
      </Grid>
      <StatusBar state={state} relation={relation} onGo={(index) => setPlace({ index, column: 0 })} />
      {editing !== null && (
        <CellEditor key={`${editing.place.index}:${editing.column.name}:${editing.failure}`} project={project} column={editing.column}
          initial={editing.initial} failure={editing.failure} width={arranged.widthOf(editing.column)}
          anchor={() => document.getElementById(`cell-${editing.place.index}-${editing.place.column}`)} onSave={save}
          onCancel={() => {
            edits.discard(editing.place.index, editing.column.name)
            close(null)
          }} />
      )}
      {openRow !== undefined && (
        <RowSheet target={target} row={openRow} title={`${relation.name} ${Object.values(openKey ?? {}).join(', ')}`}
          onPeek={showReference} onSaved={(former, next) => replaceCached(view, relation, former, next)} onClose={() => {
            setOpenIndex(null)
            if (openKey !== null) setOpenKey(null)
          }} />
      )}
      {peek && <Peek project={project} {...peek} as={as} onClose={() => setPeek(null)} />}
    </Page>
  )
}

function Lead({ relation }: { relation: Relation }) {
  return (
    <span className={css.lead}>
      <code>{relation.schema}</code>
      {relation.isView && <Badge>{texts.view}</Badge>}
      {!relation.isView && (relation.rowLevelSecurity
        ? <Badge tone="success">{texts.rowSecurityOn}</Badge>
        : <Badge tone="warning">{texts.rowSecurityOff}</Badge>)}
      {!relation.canUpdate && <span>{whyReadOnly(relation)}</span>}
      {relation.comment !== '' && <span>{relation.comment}</span>}
    </span>
  )
}

function whyReadOnly(relation: Relation): string {
  if (relation.refusal !== undefined) return texts.youCanReadTheseRows(relation.refusal)
  if (relation.isView) return texts.thisViewCannotBeChanged
  return texts.rowsCannotBeChangedHere
}

function directionOf(sort: { column: string; descending: boolean }[], c: Column): 'ascending' | 'descending' | 'none' {
  const found = sort.find((s) => s.column === c.name)
  if (found === undefined) return 'none'
  return found.descending ? 'descending' : 'ascending'
}

function stepped(at: Place, step: Step, columns: number, rows: number): Place {
  switch (step) {
    case 'stay': return at
    case 'down': return { ...at, index: Math.min(at.index + 1, rows - 1) }
    case 'next': return { ...at, column: Math.min(at.column + 1, columns - 1) }
    case 'previous': return { ...at, column: Math.max(at.column - 1, 0) }
  }
}

function copyCell(raw: string | undefined) {
  if (raw === undefined) return
  void navigator.clipboard.writeText(isNull(raw) ? '' : textOf(raw)).then(() => toast(texts.valueCopied))
}

