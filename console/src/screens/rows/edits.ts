/** Inline edits: shown at once, taken back if the server refuses, never lost. */

import { useState } from 'react'
import { texts } from '#texts/rows'
import { toast } from '../../components/Toast'
import { queries } from '../../queries'
import { encode, type Draft } from './edit'
import { shown } from './display'
import type { Row } from './json'
import { viewKey, type Page } from './pages'
import type { Relation } from './relation'
import type { View } from './request'
import type { Column } from './types'
import { ConflictError, updateRow, type Target } from './writes'

export interface Unsaved {
  draft: Draft
  message: string
}

export interface Edits {
  unsaved: (index: number, column: string) => Unsaved | undefined
  failedOf: (index: number) => string
  savingOf: (index: number) => string
  save: (index: number, row: Row, column: Column, draft: Draft) => Promise<boolean>
  discard: (index: number, column: string) => void
}

/** Keeps the edits of one view. onFailure opens the editor again and reports whether it could. */
export function useEdits(target: Target, view: View, onFailure: (index: number, column: Column, unsaved: Unsaved) => boolean): Edits {
  const [unsaved, setUnsaved] = useState<ReadonlyMap<string, Unsaved>>(new Map())
  const [saving, setSaving] = useState<ReadonlySet<string>>(new Set())

  async function save(index: number, row: Row, column: Column, draft: Draft): Promise<boolean> {
    const encoded = draft.mode === 'default' ? { raw: undefined } : encode(column, draft)
    if ('error' in encoded) return false
    const id = idOf(index, column.name)
    const { raw } = encoded
    setUnsaved((former) => without(former, id))
    if (raw !== undefined && raw === row[column.name]) return true

    setSaving((former) => new Set(former).add(id))
    if (raw !== undefined) replaceCached(view, target.relation, row, { ...row, [column.name]: raw })

    try {
      const saved = await updateRow(target, row, { [column.name]: raw })
      replaceCached(view, target.relation, row, { ...row, ...saved })
      toast(texts.nameIsNowText(column.name, shown(saved[column.name], column.kind).text.slice(0, 60)), 'success', {
        text: texts.undo, run: () => void undo(target, view, saved, row, column),
      })
      return true
    } catch (error) {
      const current = error instanceof ConflictError && error.current !== null ? error.current : row
      replaceCached(view, target.relation, row, { ...row, ...current })
      const message = error instanceof Error ? error.message : String(error)
      const failed = { draft, message }
      setUnsaved((former) => new Map(former).set(id, failed))
      if (!onFailure(index, column, failed)) {
        toast(texts.nameWasNotSavedMessage(column.name, message), 'danger', { text: texts.edit, run: () => void onFailure(index, column, failed) })
      }
      return false
    } finally {
      setSaving((former) => new Set([...former].filter((s) => s !== id)))
    }
  }

  const names = (ids: Iterable<string>, index: number) =>
    [...ids].filter((id) => id.startsWith(`${index}\n`)).map((id) => id.slice(id.indexOf('\n') + 1)).join('\n')

  return {
    unsaved: (index, column) => unsaved.get(idOf(index, column)),
    failedOf: (index) => (unsaved.size === 0 ? '' : names(unsaved.keys(), index)),
    savingOf: (index) => (saving.size === 0 ? '' : names(saving, index)),
    save,
    discard: (index, column) => setUnsaved((former) => without(former, idOf(index, column))),
  }
}

const idOf = (index: number, column: string) => `${index}\n${column}`

function without<V>(map: ReadonlyMap<string, V>, id: string): ReadonlyMap<string, V> {
  if (!map.has(id)) return map
  const next = new Map(map)
  next.delete(id)

  return next
}

async function undo(target: Target, view: View, saved: Row, former: Row, column: Column) {
  try {
    const row = await updateRow(target, saved, { [column.name]: former[column.name] ?? 'null' })
    replaceCached(view, target.relation, saved, row)
    toast(texts.nameIsAgainText(column.name, shown(row[column.name], column.kind).text.slice(0, 60)))
  } catch (error) {
    toast(texts.theChangeStaysError(error instanceof Error ? error.message : String(error)), 'danger')
  }
}

/** Returns the key of a row as text; rows without a key have none. */
export function rowKey(relation: Relation, row: Row): string {
  return relation.key.map((name) => row[name]).join('\n')
}

/** Puts a changed row in place of the former one, in every loaded page. */
export function replaceCached(view: View, relation: Relation, former: Row, next: Row): void {
  const keys = new Set([rowKey(relation, former), rowKey(relation, next)])
  queries.setQueriesData<Page | number>({ queryKey: viewKey(view) }, (page) => {
    if (typeof page !== 'object' || !page.rows.some((row) => keys.has(rowKey(relation, row)))) return page
    return { ...page, rows: page.rows.map((row) => (keys.has(rowKey(relation, row)) ? next : row)) }
  })
}
