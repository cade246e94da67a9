import { useState } from 'react'
import { texts } from '#texts/rows'
import { ApiError } from '../../api/failure'
import { FormDialog } from '../../components/Dialog'
import { toast } from '../../components/Toast'
import { queries } from '../../queries'
import type { Draft } from './edit'
import { textOf, type Row } from './json'
import { RowFields } from './RowFields'
import { deleteRows, encodeDrafts, findSame, insertRow, type Target } from './writes'

/** A dialog that inserts a row. Columns that are left alone get their defaults. */
export function InsertRow({ target, initial = {}, onClose }: {
  target: Target
  initial?: Record<string, Draft>
  onClose: () => void
}) {
  const { relation, project } = target
  const [drafts, setDrafts] = useState(initial)
  const [errors, setErrors] = useState<Record<string, string>>({})
  const [lost, setLost] = useState(false) // the answer to an attempt: the row may be there
  const refresh = () => queries.invalidateQueries({ queryKey: ['rows', project, relation.fullName] })

  async function submit() {
    const { row, errors: wrong } = encodeDrafts(relation, drafts)
    setErrors(wrong)
    const [first] = Object.keys(wrong)
    if (first !== undefined) throw new Error(texts.correctWrongFirst(Object.keys(wrong).join(', ')))

    try {
      if (lost) await refuseDuplicate(target, row, () => setLost(false))
      const inserted = await insertRow(target, row)
      await refresh()
      const key = inserted === undefined ? '' : relation.key.map((k) => textOf(inserted[k] ?? '')).join(', ')
      toast(key === '' ? texts.theRowIsInserted : texts.rowKeyIsInserted(key), 'success', inserted && relation.key.length > 0
        ? { text: texts.undo, run: () => void deleteRows(target, [inserted]).then(refresh) }
        : undefined)
    } catch (error) {
      if (error instanceof ApiError && error.status === 0) setLost(true)
      setErrors(blamed(error, relation.columns.map((c) => c.name)))
      throw error
    }
  }

  return (
    <FormDialog title={texts.insertARowIntoName(relation.name)} open onClose={onClose} side action={texts.insertRow} onSubmit={submit}>
      <RowFields project={project} columns={relation.columns} drafts={drafts} errors={errors} inserts
        onChange={(column, draft) => {
          setDrafts({ ...drafts, [column]: draft })
          setErrors(({ [column]: _, ...rest }) => rest)
        }} />
    </FormDialog>
  )
}

/** Throws if a row with the same values is there after an attempt without an answer. It asks once. */
async function refuseDuplicate(target: Target, row: Row, onAsked: () => void): Promise<void> {
  const same = await findSame(target, row)
  onAsked()
  if (same === null) return

  const key = target.relation.key.map((k) => textOf(same[k] ?? '')).join(', ')
  throw new Error(texts.aRowWithTheseValues(key === '' ? '' : `: ${key}`)
    + texts.insertAgainOnlyIfYou)
}

/** Returns the failure at the column that it names, so that it shows there as well. */
export function blamed(error: unknown, columns: string[]): Record<string, string> {
  const message = error instanceof Error ? error.message : ''
  const column = /column "([^"]+)"/.exec(message)?.[1] ?? /Key \(([^)]+)\)/.exec(message)?.[1]
  return column !== undefined && columns.includes(column) ? { [column]: message } : {}
}
