import { useState, type FormEvent } from 'react'
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
        {total === null ? (pages.error === null ? 'Counting rows' : 'Rows are not counted') : `${exact ? '' : 'about '}${total.toLocaleString()} ${total === 1 ? 'row' : 'rows'}`}
        {from > 0 && `, from ${(from + 1).toLocaleString()}`}
      </span>
      {pages.count > size && <GoTo onGo={go} />}
      {from > 0 && <Button look="quiet" onClick={() => go(1)}>First rows</Button>}
      {pages.count > from + windowRows && (
        <Button look="quiet" onClick={() => go(from + windowRows + 1)}>Rows from {(from + windowRows + 1).toLocaleString()}</Button>
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
      <input className={inputClass} inputMode="numeric" aria-label="Go to row" placeholder="Go to row" value={text}
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
      <Button look="quiet" title={`Copy the request for ${name} as a curl command`}
        onClick={() => void navigator.clipboard.writeText(curl).then(() => toast('Request copied as a curl command'))}>
        Copy curl
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
