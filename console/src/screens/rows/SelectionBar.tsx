import { useState } from 'react'
import { texts } from '#texts/rows'
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
  const count = rows.length === 1 ? '1 row' : texts.countRows(rows.length.toLocaleString())

  async function copy(format: Format) {
    await navigator.clipboard.writeText(write(format, { schema: relation.schema, name: relation.name, columns }, rows))
    toast(texts.countCopiedAsFormat(count, format))
  }

  return (
    <div className={css.bar} role="toolbar" aria-label={texts.chosenRows}>
      <b>{texts.countChosen(count)}</b>
      <Menu label={texts.copyRows} trigger={texts.copy} items={formats.map((f) => ({
        text: texts.copyAsF(f === 'SQL' ? texts.sqlInsert : f), onSelect: () => void copy(f),
      }))} />
      {relation.canUpdate && <Button onClick={() => setAsks('edit')}>{texts.changeAColumn}</Button>}
      {relation.canUpdate && <Button look="danger" onClick={() => setAsks('delete')}>{texts.deleteRows}</Button>}
      <Button look="quiet" onClick={selection.clear}>{texts.chooseNone}</Button>
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
    const text = texts.countDeletedMissing(deleted.length.toLocaleString(), missing > 0 ? texts.notGoneAlreadyOrA(missing) : '')
    toast(text, missing > 0 ? 'danger' : 'success', deleted.length > 0 ? {
      text: texts.undo,
      run: () => void restoreRows(target, deleted).finally(refresh).then(
        () => toast(texts.theRowsAreBack),
        (error: unknown) => toast(texts.theRowsAreNotBack(error instanceof Error ? error.message : String(error)), 'danger')),
    } : undefined)
  }

  return (
    <Confirm title={texts.deleteCount(count)} open action={texts.deleteCount(count)} onSubmit={remove} onClose={onClose}>
      {texts.ofWillBeDeletedRows(count, relation.name)}
    </Confirm>
  )
}
