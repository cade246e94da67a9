import { useState } from 'react'
import { texts } from '#texts/migrations'
import { Badge, Code } from '../../components/Bits'
import { Button, IconButton } from '../../components/Button'
import { Dialog } from '../../components/Dialog'
import { Table } from '../../components/Table'
import type { File, State } from './files'
import css from './Migrations.module.css'

const states: Record<State, { text: string; tone: 'neutral' | 'success' | 'warning' | 'danger' }> = {
  new: { text: 'to apply', tone: 'neutral' },
  applied: { text: 'applied', tone: 'success' },
  changed: { text: texts.changedAfterItWasApplied, tone: 'danger' },
  unfinished: { text: texts.stoppedHalfwayRunsAgain, tone: 'warning' },
  late: { text: texts.olderThanAnAppliedOne, tone: 'warning' },
  unknown: { text: texts.versionIsApplied, tone: 'neutral' },
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
      <Table label={texts.files2} rows={rows} keyOf={(r) => r.file.version} columns={[
        { title: texts.version, cell: (r) => <code className={css.wrap}>{r.file.version}</code> },
        { title: texts.name, cell: (r) => <span className={css.wrap}>{r.file.name}</span> },
        { title: texts.state, cell: (r) => <Badge tone={states[r.state].tone}>{states[r.state].text}</Badge> },
        { title: texts.actions, align: 'right', cell: (r) => (
          <span className={css.actions}>
            <Button look="quiet" aria-label={texts.showSQLOfVersion(r.file.version)} onClick={() => setShown(r.file)}>{texts.showSQL}</Button>
            <IconButton label={texts.removeVersionFromTheList(r.file.version)} onClick={() => onRemove(r.file.version)}>✕</IconButton>
          </span>
        ) },
      ]} />
      {shown !== null && (
        <Dialog title={`${shown.version} ${shown.name}`} open wide onClose={() => setShown(null)}>
          <Code text={shown.sql} label={texts.sql} />
        </Dialog>
      )}
    </>
  )
}
