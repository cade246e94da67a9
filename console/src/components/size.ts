/** Sizes as people type them. As in the command line, kB and KiB are 1024 bytes. */

const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB']

/** Returns the bytes of "10 GB" or "512"; null if it is no size. */
export function parseSize(text: string): number | null {
  const m = /^\s*(\d+(?:\.\d+)?)\s*(?:([kmgt]?)i?b?)\s*$/i.exec(text)
  if (m === null) return null

  const power = ['', 'k', 'm', 'g', 't'].indexOf((m[2] ?? '').toLowerCase())
  const bytes = Math.round(Number(m[1]) * 1024 ** power)

  return Number.isSafeInteger(bytes) ? bytes : null
}

/** Returns bytes in the largest unit that keeps them exact, such as "10 GiB". */
export function exactSize(bytes: number): string {
  let i = 0
  while (bytes !== 0 && bytes % 1024 === 0 && i < units.length - 1) {
    bytes /= 1024
    i++
  }

  return `${bytes} ${units[i]}`
}
