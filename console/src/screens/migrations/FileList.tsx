import { useState } from 'react'
import { Badge, Code } from '../../components/Bits'
import { Button, IconButton } from '../../components/Button'
import { Dialog } from '../../components/Dialog'
import { Table } from '../../components/Table'
import type { File, State } from './files'
import css from './Migrations.module.css'

const states: Record<State, { text: string; tone: 'neutral' | 'success' | 'warning' | 'danger' }> = {
  new: { text: 'to apply', tone: 'neutral' },
  applied: { text: 'applied', tone: 'success' },
  changed: { text: 'changed after it was applied', tone: 'danger' },
  unfinished: { text: 'stopped halfway: runs again', tone: 'warning' },
  late: { text: 'older than an applied one', tone: 'warning' },
  unknown: { text: 'version is applied', tone: 'neutral' },
}

export function FileList({ files, states: known, onRemove }: {
  files: File[]
  states: State[]
  onRemove: (version: string) => void
}) {
  const [shown, setShown] = useState<File | null>(null)
  const rows = files.map((file, i) => ({ file, state: known[i] ?? 'unknown' }))

  return (
    <>
      <Table label="Files" rows={rows} keyOf={(r) => r.file.version} columns={[
        { title: 'Version', cell: (r) => <code className={css.wrap}>{r.file.version}</code> },
        { title: 'Name', cell: (r) => <span className={css.wrap}>{r.file.name}</span> },
        { title: 'State', cell: (r) => <Badge tone={states[r.state].tone}>{states[r.state].text}</Badge> },
        { title: 'Actions', align: 'right', cell: (r) => (
          <span className={css.actions}>
            <Button look="quiet" aria-label={`Show SQL of ${r.file.version}`} onClick={() => setShown(r.file)}>Show SQL</Button>
            <IconButton label={`Remove ${r.file.version} from the list`} onClick={() => onRemove(r.file.version)}>✕</IconButton>
          </span>
        ) },
      ]} />
      {shown !== null && (
        <Dialog title={`${shown.version} ${shown.name}`} open wide onClose={() => setShown(null)}>
          <Code text={shown.sql} label="SQL" />
        </Dialog>
      )}
    </>
  )
}
