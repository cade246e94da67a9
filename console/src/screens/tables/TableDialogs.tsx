import { useState } from 'react'
import { useQuery } from '@tanstack/react-query'
import { texts } from '#texts/tables'
import { api, inProject, read } from '../../api/client'
import { Confirm, FormDialog } from '../../components/Dialog'
import { CheckField, TextField } from '../../components/Field'
import { toast } from '../../components/Toast'
import type { Entry } from '../../components/tableList'
import { queries } from '../../queries'
import { refreshTables } from '../../components/tableList'
import type { Dependent } from './queries'

interface Props {
  project: string
  entry: Entry
  onClose: () => void
}

export function RenameTable({ project, entry, onClose }: Props) {
  const [name, setName] = useState(entry.name)

  async function rename() {
    const { metadata } = await read(api.PUT('/tables/{tableUUID}/rename', {
      params: { path: { tableUUID: entry.uuid }, header: inProject(project) }, body: { name },
    }))
    await refreshTables(project)
    toast(texts.nameIsNowName2Mentions(entry.name, name, mentionsOf(metadata.mentions)))
  }

  return (
    <FormDialog title={texts.renameName(entry.name)} open onClose={onClose} action={texts.renameTable} onSubmit={rename}
      disabled={name === '' || name === entry.name}>
      <TextField label={texts.name} required value={name} onChange={(e) => setName(e.target.value)} autoFocus
        hint={texts.lettersDigitsAndUnderscoresRequests} />
    </FormDialog>
  )
}

/** Functions keep their text: they must be changed by hand. */
function mentionsOf(mentions: Dependent[] | undefined): string {
  if (mentions === undefined || mentions.length === 0) return ''
  return texts.adjustMentions(mentions.map((m) => m.name).join(', '))
}

export function DuplicateTable({ project, entry, onClose }: Props) {
  const [name, setName] = useState(`${entry.name}_copy`.replace(/[^A-Za-z0-9_]/g, '_'))
  const [withRows, setWithRows] = useState(true)
  const [key] = useState(() => crypto.randomUUID())

  async function duplicate() {
    await read(api.POST('/tables/{tableUUID}/duplicate', {
      params: { path: { tableUUID: entry.uuid }, header: inProject(project) },
      headers: { 'Idempotency-Key': key },
      body: { name, with_rows: withRows },
    }))
    await refreshTables(project)
    toast(texts.nameIsCreated(name))
  }

  return (
    <FormDialog title={texts.duplicateName(entry.name)} open onClose={onClose} action={texts.duplicateTable} onSubmit={duplicate}>
      <TextField label={texts.nameOfTheCopy} required value={name} onChange={(e) => setName(e.target.value)} autoFocus />
      <CheckField label={texts.copyTheRows} checked={withRows} onChange={(e) => setWithRows(e.target.checked)} />
      <p>{texts.columnsDefaultsConstraintsIndexesAnd}</p>
    </FormDialog>
  )
}

export function DeleteTable({ project, entry, onClose }: Props) {
  const [cascade, setCascade] = useState(false)
  const dependents = useQuery({
    queryKey: ['tables', project, entry.fullName, 'references'],
    queryFn: () => read(api.GET('/tables/{tableUUID}/constraints', {
      params: { path: { tableUUID: entry.uuid }, header: inProject(project) },
    })),
  })

  async function remove() {
    const { metadata } = await read(api.DELETE('/tables/{tableUUID}', {
      params: { path: { tableUUID: entry.uuid }, header: inProject(project), query: { cascade: cascade ? 'true' : 'false' } },
    }))
    await queries.invalidateQueries({ queryKey: ['tables', project, 'all'] }) // not those of the table that is gone
    const gone = metadata.deleted.map((d) => `${d.kind} ${d.name}`)
    toast(texts.nameIsDeletedGone(entry.name, gone.length > 0 ? texts.withGone(gone.join(', ')) : ''))
  }

  const foreign = dependents.data?.content.filter((c) => c.type === 'foreign').length ?? 0

  return (
    <Confirm title={texts.deleteName(entry.name)} open onClose={onClose} action={texts.deleteTable} name={entry.name} onSubmit={remove}>
      <p>{texts.aboutRowsAreLostWith(entry.rows.toLocaleString(), entry.size)}
        {texts.onlyABackupCanBring(foreign > 0 && texts.andItsForeign(foreign, foreign === 1 ? texts.key : texts.keys))}</p>
      <CheckField label={texts.deleteWhatDependsOnIt} checked={cascade} onChange={(e) => setCascade(e.target.checked)}
        hint={texts.viewsAndForeignKeysOf} />
    </Confirm>
  )
}
