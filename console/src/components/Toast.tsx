import { useSyncExternalStore } from 'react'
import css from './Toast.module.css'

interface Toast {
  id: number
  text: string
  tone: 'success' | 'danger'
  action: { text: string; run: () => void } | undefined
}

const shownFor = 6000 // ms
let toasts: readonly Toast[] = []
let lastID = 0
const listeners = new Set<() => void>()

function set(next: readonly Toast[]) {
  toasts = next
  listeners.forEach((f) => f())
}

function subscribe(f: () => void) {
  listeners.add(f)
  return () => listeners.delete(f)
}

/** Shows a sentence for some seconds, with an action such as Undo. */
export function toast(text: string, tone: Toast['tone'] = 'success', action?: Toast['action']): void {
  const id = ++lastID
  set([...toasts, { id, text, tone, action }])
  setTimeout(() => set(toasts.filter((t) => t.id !== id)), shownFor)
}

export function Toasts() {
  const shown = useSyncExternalStore(subscribe, () => toasts)

  return (
    <div className={css.list} aria-live="polite">
      {shown.map((t) => (
        <div key={t.id} className={`${css.toast} ${css[t.tone]}`}>
          <span>{t.text}</span>
          {t.action && (
            <button type="button" onClick={() => {
              set(toasts.filter((other) => other.id !== t.id))
              t.action?.run()
            }}>
              {t.action.text}
            </button>
          )}
        </div>
      ))}
    </div>
  )
}
