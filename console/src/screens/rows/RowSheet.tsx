import { useState } from 'react'
import { useQuery } from '@tanstack/react-query'
import { texts } from '#texts/rows'
import { Dialog, FormDialog } from '../../components/Dialog'
import { Empty, Loaded } from '../../components/States'
import { toast } from '../../components/Toast'
import { draftOf, encode, type Draft } from './edit'
import { blamed } from './InsertRow'
import type { Row } from './json'
import { RowFields } from './RowFields'
import type { Column } from './types'
import { ConflictError, readRow, updateRow, type Changes, type Target } from './writes'

/** One row with all its columns, to read and to edit. */
export function RowSheet({ target, row, title, onSaved, onClose, onPeek }: {
  target: Target
  row: Row // at least its key
  title: string
  onSaved: (former: Row, next: Row) => void
  onClose: () => void
  onPeek: (column: Column, value: string) => void
}) {
  const { project, relation, as } = target
  const query = useQuery({
    queryKey: ['rows', project, relation.fullName, 'one', as, relation.key.map((k) => row[k]).join('\n')],
    enabled: relation.key.length > 0,
    queryFn: () => readRow(target, row),
    refetchOnWindowFocus: false,
    staleTime: 0,
    gcTime: 0,
  })

  if (relation.key.length === 0) {
    return (
      <Dialog title={title} open onClose={onClose} side>
        <RowFields project={project} columns={relation.columns} drafts={draftsOf(relation.columns, row)} errors={{}}
          onChange={() => undefined} inserts={false} readOnly onPeek={onPeek} />
      </Dialog>
    )
  }
  if (query.data) {
    return <Editor target={target} row={query.data} title={title} onSaved={onSaved} onClose={onClose} onPeek={onPeek} />
  }

  return (
    <Dialog title={title} open onClose={onClose} side>
      <Loaded query={query}>
        {() => <Empty title={texts.thisRowIsNotThere}>{texts.itWasDeletedItsKey}</Empty>}
      </Loaded>
    </Dialog>
  )
}

function draftsOf(columns: Column[], row: Row): Record<string, Draft> {
  return Object.fromEntries(columns.map((c) => [c.name, draftOf(row[c.name], c.kind)]))
}

function Editor({ target, row: loaded, title, onSaved, onClose, onPeek }: {
  target: Target
  row: Row
  title: string
  onSaved: (former: Row, next: Row) => void
  onClose: () => void
  onPeek: (column: Column, value: string) => void
}) {
  const { relation } = target
  const [row, setRow] = useState(loaded) // what the row was when the person saw it last
  const [drafts, setDrafts] = useState<Record<string, Draft>>({})
  const [errors, setErrors] = useState<Record<string, string>>({})
  const columns = relation.columns.filter((c) => c.name in drafts)

  async function save() {
    const changes: Changes = {}
    const wrong: Record<string, string> = {}
    for (const c of columns) {
      const draft = drafts[c.name]!
      const encoded = draft.mode === 'default' ? { raw: undefined } : encode(c, draft)
      if ('error' in encoded) wrong[c.name] = encoded.error
      else changes[c.name] = encoded.raw
    }
    setErrors(wrong)
    if (Object.keys(wrong).length > 0) throw new Error(texts.correctWrongFirst(Object.keys(wrong).join(', ')))

    try {
      const saved = await updateRow(target, row, changes)
      onSaved(row, saved)
      const former = Object.fromEntries(columns.map((c) => [c.name, row[c.name] ?? 'null']))
      toast(texts.columnsSaved(columns.map((c) => c.name).join(', ').slice(0, 80)), 'success', {
        text: texts.undo,
        run: () => void updateRow(target, saved, former).then((next) => onSaved(saved, next),
          (error: unknown) => toast(texts.theChangeStaysError(error instanceof Error ? error.message : String(error)), 'danger')),
      })
    } catch (error) {
      if (error instanceof ConflictError && error.current !== null) setRow(error.current)
      setErrors(blamed(error, relation.columns.map((c) => c.name)))
      throw error
    }
  }

  return (
    <FormDialog title={title} open onClose={onClose} side action={texts.saveChanges} onSubmit={save}
      disabled={columns.length === 0 || !relation.canUpdate}>
      <RowFields project={target.project} columns={relation.columns} inserts={false} readOnly={!relation.canUpdate} onPeek={onPeek}
        drafts={{ ...draftsOf(relation.columns, row), ...drafts }} errors={errors} onChange={(column, draft) => {
          setDrafts({ ...drafts, [column]: draft })
          setErrors(({ [column]: _, ...rest }) => rest)
        }} />
    </FormDialog>
  )
}
