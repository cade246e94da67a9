import { useState } from 'react'
import { Button } from '../../components/Button'
import { Confirm } from '../../components/Dialog'
import { Menu } from '../../components/Menu'
import { toast } from '../../components/Toast'
import { queries } from '../../queries'
import { BulkEdit } from './BulkEdit'
import { formats, write, type Format } from './copy'
import type { Column } from './types'
import type { Selection } from './useSelection'
import { deleteRows, restoreRows, type Target } from './writes'
import css from './SelectionBar.module.css'

/** What can be done with the chosen rows. */
export function SelectionBar({ target, selection, columns }: { target: Target; selection: Selection; columns: Column[] }) {
  const [asks, setAsks] = useState<'delete' | 'edit' | null>(null)
  const { relation } = target
  const { rows } = selection
  const count = rows.length === 1 ? '1 row' : `${rows.length.toLocaleString()} rows`

  async function copy(format: Format) {
    await navigator.clipboard.writeText(write(format, { schema: relation.schema, name: relation.name, columns }, rows))
    toast(`${count} copied as ${format}`)
  }

  return (
    <div className={css.bar} role="toolbar" aria-label="Chosen rows">
      <b>{count} chosen</b>
      <Menu label="Copy rows" trigger="Copy ▾" items={formats.map((f) => ({
        text: `Copy as ${f === 'SQL' ? 'SQL insert' : f}`, onSelect: () => void copy(f),
      }))} />
      {relation.canUpdate && <Button onClick={() => setAsks('edit')}>Change a column</Button>}
      {relation.canUpdate && <Button look="danger" onClick={() => setAsks('delete')}>Delete rows</Button>}
      <Button look="quiet" onClick={selection.clear}>Choose none</Button>
      {asks === 'delete' && <DeleteRows target={target} selection={selection} count={count} onClose={() => setAsks(null)} />}
      {asks === 'edit' && <BulkEdit target={target} rows={rows} count={count} onClose={() => setAsks(null)} />}
    </div>
  )
}

function DeleteRows({ target, selection, count, onClose }: {
  target: Target
  selection: Selection
  count: string
  onClose: () => void
}) {
  const { project, relation } = target
  const refresh = () => queries.invalidateQueries({ queryKey: ['rows', project, relation.fullName] })

  async function remove() {
    const deleted = await deleteRows(target, selection.rows).finally(refresh)
    selection.clear()
    const missing = selection.rows.length - deleted.length
    const text = `${deleted.length.toLocaleString()} deleted${missing > 0 ? `, ${missing} not: gone already, or a policy forbids it` : ''}`
    toast(text, missing > 0 ? 'danger' : 'success', deleted.length > 0 ? {
      text: 'Undo',
      run: () => void restoreRows(target, deleted).finally(refresh).then(
        () => toast('The rows are back'),
        (error: unknown) => toast(`The rows are not back: ${error instanceof Error ? error.message : String(error)}`, 'danger')),
    } : undefined)
  }

  return (
    <Confirm title={`Delete ${count}`} open action={`Delete ${count}`} onSubmit={remove} onClose={onClose}>
      {count} of {relation.name} will be deleted. Rows of other tables that refer to them with “on delete cascade” go too, and do not
      come back with Undo.
    </Confirm>
  )
}
