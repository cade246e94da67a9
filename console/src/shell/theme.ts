export type Theme = 'light' | 'dark' | 'system'

const key = 'socle-theme'
const dark = matchMedia('(prefers-color-scheme: dark)')

export function theme(): Theme {
  const stored = localStorage.getItem(key)
  return stored === 'light' || stored === 'dark' ? stored : 'system'
}

export function setTheme(next: Theme): void {
  localStorage.setItem(key, next)
  show()
}

/** Shows the person's theme, and follows the system's where they have none. */
export function applyTheme(): void {
  show()
  dark.addEventListener('change', show)
}

function show(): void {
  const t = theme()
  document.documentElement.dataset.theme = t === 'system' ? (dark.matches ? 'dark' : 'light') : t
}
