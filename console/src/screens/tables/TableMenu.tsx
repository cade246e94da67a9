import { useState } from 'react'
import { useNavigate } from '@tanstack/react-router'
import { texts } from '#texts/tables'
import { exportTable } from '../../components/exportTable'
import { ImportDialog } from '../../components/ImportDialog'
import { Menu, type MenuItem } from '../../components/Menu'
import { toast } from '../../components/Toast'
import type { Entry } from '../../components/tableList'
import { DeleteTable, DuplicateTable, RenameTable } from './TableDialogs'

type Open = 'rename' | 'duplicate' | 'delete' | 'import' | null

/** What can be done with a table of the list. */
export function TableMenu({ project, entry }: { project: string; entry: Entry }) {
  const navigate = useNavigate()
  const [open, setOpen] = useState<Open>(null)
  const address = `/projects/${project}/tables/${encodeURIComponent(entry.fullName)}`
  const close = () => setOpen(null)

  const download = (format: 'csv' | 'jsonl', spreadsheet = false) => void exportTable(project, entry.fullName, format, spreadsheet)
    .catch((error: unknown) => toast(texts.theExportEndedEarlyError(error instanceof Error ? error.message : String(error)), 'danger'))

  const rows = { text: texts.openRows, onSelect: () => void navigate({ to: address }) }
  const items: MenuItem[] = entry.isView ? [rows] : [
    rows,
    { text: texts.openStructure, onSelect: () => void navigate({ to: `${address}/structure` }) },
    { text: texts.importRows, needs: 'importRows', onSelect: () => setOpen('import') },
    { text: texts.exportAsCSV, needs: 'exportTable', onSelect: () => download('csv') },
    { text: texts.exportForSpreadsheets, needs: 'exportTable', onSelect: () => download('csv', true) },
    { text: texts.exportAsJSONLines, needs: 'exportTable', onSelect: () => download('jsonl') },
    { text: texts.rename, needs: 'renameTable', onSelect: () => setOpen('rename') },
    { text: texts.duplicate, needs: 'duplicateTable', onSelect: () => setOpen('duplicate') },
    { text: texts.delete, danger: true, needs: 'deleteTable', onSelect: () => setOpen('delete') },
  ]

  return (
    <>
      <Menu label={texts.actionsOfName(entry.name)} items={items} />
      {open === 'rename' && <RenameTable project={project} entry={entry} onClose={close} />}
      {open === 'duplicate' && <DuplicateTable project={project} entry={entry} onClose={close} />}
      {open === 'delete' && <DeleteTable project={project} entry={entry} onClose={close} />}
      {open === 'import' && <ImportDialog project={project} table={entry.fullName} onClose={close} />}
    </>
  )
}
