import { useState } from 'react'
import { FormDialog } from '../../components/Dialog'
import { toast } from '../../components/Toast'
import { queries } from '../../queries'
import type { Draft } from './edit'
import { textOf } from './json'
import { RowFields } from './RowFields'
import { deleteRows, encodeDrafts, insertRow, type Target } from './writes'

/** A dialog that inserts a row. Columns that are left alone get their defaults. */
export function InsertRow({ target, initial = {}, onClose }: {
  target: Target
  initial?: Record<string, Draft>
  onClose: () => void
}) {
  const { relation, project } = target
  const [drafts, setDrafts] = useState(initial)
  const [errors, setErrors] = useState<Record<string, string>>({})
  const refresh = () => queries.invalidateQueries({ queryKey: ['rows', project, relation.fullName] })

  async function submit() {
    const { row, errors: wrong } = encodeDrafts(relation, drafts)
    setErrors(wrong)
    const [first] = Object.keys(wrong)
    if (first !== undefined) throw new Error(`Correct ${Object.keys(wrong).join(', ')} first.`)

    try {
      const inserted = await insertRow(target, row)
      await refresh()
      const key = inserted === undefined ? '' : relation.key.map((k) => textOf(inserted[k] ?? '')).join(', ')
      toast(key === '' ? 'The row is inserted' : `Row ${key} is inserted`, 'success', inserted && relation.key.length > 0
        ? { text: 'Undo', run: () => void deleteRows(target, [inserted]).then(refresh) }
        : undefined)
    } catch (error) {
      setErrors(blamed(error, relation.columns.map((c) => c.name)))
      throw error
    }
  }

  return (
    <FormDialog title={`Insert a row into ${relation.name}`} open onClose={onClose} side action="Insert row" onSubmit={submit}>
      <RowFields project={project} columns={relation.columns} drafts={drafts} errors={errors} inserts
        onChange={(column, draft) => {
          setDrafts({ ...drafts, [column]: draft })
          setErrors(({ [column]: _, ...rest }) => rest)
        }} />
    </FormDialog>
  )
}

/** Returns the failure at the column that it names, so that it shows there as well. */
export function blamed(error: unknown, columns: string[]): Record<string, string> {
  const message = error instanceof Error ? error.message : ''
  const column = /column "([^"]+)"/.exec(message)?.[1] ?? /Key \(([^)]+)\)/.exec(message)?.[1]
  return column !== undefined && columns.includes(column) ? { [column]: message } : {}
}
