import { useState, type FormEvent } from 'react'
import { texts } from '#texts/rows'
import { Button } from '../../components/Button'
import { inputClass } from '../../components/Field'
import { toast } from '../../components/Toast'
import type { Relation } from './relation'
import { headersOf, pagePath } from './request'
import { windowRows, type useRowsView } from './useRowsView'
import css from './StatusBar.module.css'

/** How many rows there are, a way to one by its number, and the request behind the grid. */
export function StatusBar({ state, relation, onGo }: {
  state: ReturnType<typeof useRowsView>
  relation: Relation
  onGo: (index: number) => void
}) {
  const { pages, view, from, size } = state
  const { total, exact } = pages

  function go(number: number) {
    if (!Number.isFinite(number)) return
    const index = Math.min(Math.max(0, Math.floor(number) - 1), Math.max(0, pages.count - 1))
    if (index < from || index >= from + windowRows) {
      state.setFrom(String(Math.floor(index / windowRows) * windowRows))
    }
    onGo(index)
  }

  return (
    <footer className={css.bar}>
      <span className={css.total}>
        {total === null ? (pages.error === null ? texts.countingRows : texts.rowsAreNotCounted) : countText(total, exact)}
        {from > 0 && texts.from((from + 1).toLocaleString())}
      </span>
      {pages.count > size && <GoTo onGo={go} />}
      {from > 0 && <Button look="quiet" onClick={() => go(1)}>{texts.firstRows}</Button>}
      {pages.count > from + windowRows && (
        <Button look="quiet" onClick={() => go(from + windowRows + 1)}>{texts.rowsFrom((from + windowRows + 1).toLocaleString())}</Button>
      )}
      <Request path={pagePath(view, { offset: 0 }, size)} headers={headersOf(view)} name={relation.name} />
    </footer>
  )
}

function GoTo({ onGo }: { onGo: (number: number) => void }) {
  const [text, setText] = useState('')

  function submit(e: FormEvent) {
    e.preventDefault()
    if (text !== '') onGo(Number(text))
  }

  return (
    <form className={css.go} onSubmit={submit}>
      <input className={inputClass} inputMode="numeric" aria-label={texts.goToRow} placeholder={texts.goToRow} value={text}
        onChange={(e) => setText(e.target.value.replace(/\D/g, ''))} />
    </form>
  )
}

/** The request that a script would make for what the grid shows. */
function Request({ path, headers, name }: { path: string; headers: Record<string, string>; name: string }) {
  const sent = Object.entries({ Authorization: 'Bearer $TOKEN', ...headers })
  const curl = `curl '${location.origin}${path.replaceAll("'", '%27')}'${sent.map(([k, v]) => ` -H "${k}: ${v}"`).join('')}`
  const shown = path.replace(/^\/projects\/[^/]+/, '…')

  return (
    <span className={css.request}>
      <code title={path}>GET {safeDecode(shown)}</code>
      <Button look="quiet" title={texts.copyTheRequestForAs(name)}
        onClick={() => void navigator.clipboard.writeText(curl).then(() => toast(texts.requestCopiedAsACurl))}>
        {texts.copyCurl}
      </Button>
    </span>
  )
}

function safeDecode(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

function countText(total: number, exact: boolean): string {
  const count = total === 1 ? texts.oneRow : texts.countRows(total.toLocaleString())
  return exact ? count : texts.aboutCount(count)
}
