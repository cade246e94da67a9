/** Browsers withhold two functions from pages that are neither https nor local: what the console uses of them. */

import { texts } from '#texts/shell'

const withheld: { randomUUID?: unknown } = crypto
withheld.randomUUID ??= randomUUID

if (!('clipboard' in navigator)) {
  Object.defineProperty(navigator, 'clipboard', { value: { writeText: copy } })
}

function randomUUID(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16))
  bytes[6] = (bytes[6]! & 0x0f) | 0x40 // version 4
  bytes[8] = (bytes[8]! & 0x3f) | 0x80 // variant of RFC 9562
  const hex = [...bytes].map((b) => b.toString(16).padStart(2, '0')).join('')

  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-')
}

async function copy(text: string): Promise<void> {
  const area = document.createElement('textarea')
  area.value = text
  document.body.append(area)
  area.select()
  const copied = document.execCommand('copy')
  area.remove()
  if (!copied) throw new Error(texts.theBrowserDoesNotCopy)
}
