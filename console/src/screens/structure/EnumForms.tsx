import { useMemo, useState } from 'react'
import { api, inProject, type Schemas } from '../../api/client'
import { change, mentionsOf } from '../../components/change'
import { FormDialog } from '../../components/Dialog'
import { SelectField, TextArea, TextField } from '../../components/Field'
import { toast } from '../../components/Toast'
import { queries } from '../../queries'
import css from './Structure.module.css'

interface Props {
  project: string
  of: Schemas['Enum']
  onClose: () => void
}

const reload = (project: string) => queries.invalidateQueries({ queryKey: ['enums', project] })
const onEnum = (project: string, e: Schemas['Enum']) =>
  ({ header: inProject(project), path: { enumName: `${e.schema}.${e.name}` } })

export function NewEnum({ project, onClose }: Omit<Props, 'of'>) {
  const [name, setName] = useState('')
  const [schema, setSchema] = useState('public')
  const [text, setText] = useState('')
  const key = useMemo(() => crypto.randomUUID(), [])
  const values = text.split('\n').map((v) => v.trim()).filter((v) => v !== '')

  async function create() {
    await change(api.POST('/enums', {
      params: { header: inProject(project) }, headers: { 'Idempotency-Key': key }, body: { name, schema, values },
    }))
    await reload(project)
  }

  return (
    <FormDialog title="Create an enum" open onClose={onClose} action="Create enum" onSubmit={create}
      disabled={values.length === 0}>
      <div className={css.pair}>
        <TextField label="Name" required autoFocus value={name} onChange={(e) => setName(e.target.value)} />
        <TextField label="Schema" required value={schema} onChange={(e) => setSchema(e.target.value)} />
      </div>
      <TextArea label="Values" rows={6} value={text} hint="One a line, in the order in which they sort."
        onChange={(e) => setText(e.target.value)} />
    </FormDialog>
  )
}

export function AddValue({ project, of, onClose }: Props) {
  const [value, setValue] = useState('')
  const [before, setBefore] = useState('')
  const key = useMemo(() => crypto.randomUUID(), [])

  async function add() {
    await change(api.POST('/enums/{enumName}/values', {
      params: onEnum(project, of), headers: { 'Idempotency-Key': key },
      body: { value, ...(before !== '' && { before }) },
    }))
    await reload(project)
  }

  return (
    <FormDialog title={`Add a value to ${of.name}`} open onClose={onClose} action="Add value" onSubmit={add}>
      <TextField label="Value" required autoFocus value={value} hint="It can be renamed later, but not removed."
        onChange={(e) => setValue(e.target.value)} />
      <SelectField label="Place" value={before} onChange={(e) => setBefore(e.target.value)}>
        <option value="">at the end</option>
        {of.values.map((v) => <option key={v} value={v}>before {v}</option>)}
      </SelectField>
    </FormDialog>
  )
}

export function RenameValue({ project, of, onClose }: Props) {
  const [former, setFormer] = useState(of.values[0] ?? '')
  const [value, setValue] = useState('')

  async function rename() {
    const { header, path } = onEnum(project, of)
    const { metadata } = await change(api.PUT('/enums/{enumName}/values/{enumValue}', {
      params: { header, path: { ...path, enumValue: former } }, body: { value },
    }))
    await reload(project)
    const mentions = mentionsOf(metadata)
    if (mentions !== '') toast(`Renamed ${former}.${mentions}`)
  }

  return (
    <FormDialog title={`Rename a value of ${of.name}`} open onClose={onClose} action="Rename value" onSubmit={rename}>
      <SelectField label="Value" value={former} onChange={(e) => setFormer(e.target.value)}>
        {of.values.map((v) => <option key={v}>{v}</option>)}
      </SelectField>
      <TextField label="New name" required value={value} hint="Rows that have the value show the new name."
        onChange={(e) => setValue(e.target.value)} />
    </FormDialog>
  )
}
