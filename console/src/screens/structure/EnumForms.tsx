import { useMemo, useState } from 'react'
import { texts } from '#texts/structure'
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
    <FormDialog title={texts.createAnEnum} open onClose={onClose} action={texts.createEnum} onSubmit={create}
      disabled={values.length === 0}>
      <div className={css.pair}>
        <TextField label={texts.name} required autoFocus value={name} onChange={(e) => setName(e.target.value)} />
        <TextField label={texts.schema} required value={schema} onChange={(e) => setSchema(e.target.value)} />
      </div>
      <TextArea label={texts.values} rows={6} value={text} hint={texts.oneALineInThe}
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
    <FormDialog title={texts.addAValueToName(of.name)} open onClose={onClose} action={texts.addValue} onSubmit={add}>
      <TextField label={texts.value} required autoFocus value={value} hint={texts.itCanBeRenamedLater}
        onChange={(e) => setValue(e.target.value)} />
      <SelectField label={texts.place} value={before} onChange={(e) => setBefore(e.target.value)}>
        <option value="">{texts.atTheEnd}</option>
        {of.values.map((v) => <option key={v} value={v}>{texts.beforeV(v)}</option>)}
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
    if (mentions !== '') toast(texts.renamedFormerMentions(former, mentions))
  }

  return (
    <FormDialog title={texts.renameAValueOfName(of.name)} open onClose={onClose} action={texts.renameValue} onSubmit={rename}>
      <SelectField label={texts.value} value={former} onChange={(e) => setFormer(e.target.value)}>
        {of.values.map((v) => <option key={v}>{v}</option>)}
      </SelectField>
      <TextField label={texts.newName} required value={value} hint={texts.rowsThatHaveTheValue}
        onChange={(e) => setValue(e.target.value)} />
    </FormDialog>
  )
}
