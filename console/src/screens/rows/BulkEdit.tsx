import { useState } from 'react'
import { texts } from '#texts/rows'
import { FormDialog } from '../../components/Dialog'
import { SelectField } from '../../components/Field'
import { toast } from '../../components/Toast'
import { queries } from '../../queries'
import { encode, type Draft } from './edit'
import type { Row } from './json'
import { RowFields } from './RowFields'
import { updateRows, type Target } from './writes'

/** Sets one column of the chosen rows to one value. */
export function BulkEdit({ target, rows, count, onClose }: { target: Target; rows: Row[]; count: string; onClose: () => void }) {
  const { project, relation } = target
  const choices = relation.columns.filter((c) => !c.primary)
  const [name, setName] = useState(choices[0]?.name ?? '')
  const [draft, setDraft] = useState<Draft>({ mode: 'value', text: '' })
  const [error, setError] = useState('')
  const column = choices.find((c) => c.name === name)

  async function submit() {
    if (column === undefined) return
    const encoded = draft.mode === 'default' ? { raw: undefined } : encode(column, draft)
    if ('error' in encoded) {
      setError(encoded.error)
      throw new Error(encoded.error)
    }

    const changed = await updateRows(target, rows, { [name]: encoded.raw })
    await queries.invalidateQueries({ queryKey: ['rows', project, relation.fullName] })
    const missing = rows.length - changed
    toast(texts.nameChangedInChangedRows(name, changed.toLocaleString(), missing > 0 ? texts.notInMissing(missing) : ''), missing > 0 ? 'danger' : 'success')
  }

  return (
    <FormDialog title={texts.changeCount(count)} open onClose={onClose} action={texts.changeCount(count)} onSubmit={submit}>
      <SelectField label={texts.column} value={name} onChange={(e) => {
        setName(e.target.value)
        setDraft({ mode: 'value', text: '' })
        setError('')
      }}>
        {choices.map((c) => <option key={c.name}>{c.name}</option>)}
      </SelectField>
      {column && (
        <RowFields project={project} columns={[column]} drafts={{ [name]: draft }} errors={error === '' ? {} : { [name]: error }}
          inserts={false} onChange={(_, next) => {
            setDraft(next)
            setError('')
          }} />
      )}
      <p>{texts.theFormerValuesAreNot}</p>
    </FormDialog>
  )
}
