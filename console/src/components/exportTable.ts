import { send } from '../api/client'
import { failureOf } from '../api/failure'

export type ExportFormat = 'csv' | 'tsv' | 'jsonl'

/** Downloads all rows of a table as a file. */
export async function exportTable(project: string, table: string, format: ExportFormat, spreadsheet = false): Promise<void> {
  const query = new URLSearchParams({ format, ...(spreadsheet && { spreadsheet: 'true' }) })
  const path = `/tables/${encodeURIComponent(table)}/export?${query.toString()}`
  const response = await send(location.origin + path, { headers: { 'X-Project': project } })
  if (!response.ok) {
    const answer: unknown = await response.json().catch(() => null)
    throw failureOf(response, answer)
  }

  const address = URL.createObjectURL(await response.blob())
  const link = document.createElement('a')
  link.href = address
  link.download = `${table.replace(/^public\./, '').replace(/[/\\:*?"<>|]/g, '_')}.${format}`
  link.click()
  setTimeout(() => URL.revokeObjectURL(address), 60_000) // the browser reads it after the click
}
