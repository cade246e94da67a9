import { useState } from 'react'
import { useNavigate } from '@tanstack/react-router'
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
    .catch((error: unknown) => toast(`The export ended early: ${error instanceof Error ? error.message : String(error)}`, 'danger'))

  const rows = { text: 'Open rows', onSelect: () => void navigate({ to: address }) }
  const items: MenuItem[] = entry.isView ? [rows] : [
    rows,
    { text: 'Open structure', onSelect: () => void navigate({ to: `${address}/structure` }) },
    { text: 'Import rows', needs: 'importRows', onSelect: () => setOpen('import') },
    { text: 'Export as CSV', needs: 'exportTable', onSelect: () => download('csv') },
    { text: 'Export for spreadsheets', needs: 'exportTable', onSelect: () => download('csv', true) },
    { text: 'Export as JSON lines', needs: 'exportTable', onSelect: () => download('jsonl') },
    { text: 'Rename', needs: 'renameTable', onSelect: () => setOpen('rename') },
    { text: 'Duplicate', needs: 'duplicateTable', onSelect: () => setOpen('duplicate') },
    { text: 'Delete', danger: true, needs: 'deleteTable', onSelect: () => setOpen('delete') },
  ]

  return (
    <>
      <Menu label={`Actions of ${entry.name}`} items={items} />
      {open === 'rename' && <RenameTable project={project} entry={entry} onClose={close} />}
      {open === 'duplicate' && <DuplicateTable project={project} entry={entry} onClose={close} />}
      {open === 'delete' && <DeleteTable project={project} entry={entry} onClose={close} />}
      {open === 'import' && <ImportDialog project={project} table={entry.fullName} onClose={close} />}
    </>
  )
}
