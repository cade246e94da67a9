/** What the fields of a container mean, without their screen. */

const units = { '': 1, b: 1, kb: 1024, mb: 1024 ** 2, gb: 1024 ** 3, tb: 1024 ** 4 }

/** Reads a size such as "50 MB" as bytes, or undefined. A number alone is bytes. */
export function parseSize(text: string): number | undefined {
  const match = /^\s*(\d+(?:[.,]\d+)?)\s*([kmgt]?b?)\s*$/i.exec(text)
  if (!match) return undefined

  let unit = match[2]!.toLowerCase()
  if (unit !== '' && unit !== 'b' && !unit.endsWith('b')) unit += 'b'

  return Math.round(Number(match[1]!.replace(',', '.')) * units[unit as keyof typeof units])
}

/** Writes bytes so that parseSize reads the same number again. */
export function sizeText(bytes: number): string {
  for (const [unit, size] of Object.entries(units).reverse()) {
    if (unit.length === 2 && bytes >= size && bytes % size === 0) {
      return `${bytes / size} ${unit === 'kb' ? 'kB' : unit.toUpperCase()}`
    }
  }

  return String(bytes)
}

/** Reads media types, one a line or after commas. */
export function parseTypes(text: string): string[] {
  return text.split(/[\s,]+/).filter((t) => t !== '')
}
