const base = '/console'

/** Returns the screen after sign-in: a path of the console, below its base, or the start. */
export function screenAfter(next: unknown): string {
  if (typeof next !== 'string' || !next.startsWith('/') || /[\\\u0000-\u0020]/.test(next)) return '/'

  const path = next === base || next.startsWith(`${base}/`) ? next.slice(base.length) || '/' : next
  if (path.startsWith('//')) return '/'
  if (/^\/(sign-in|sign-up|forgotten)([/?#]|$)/.test(path)) return '/'

  return path
}
