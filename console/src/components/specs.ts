import { texts } from '#texts/components'
import { exactSize, parseSize } from './size'

/** A setting in a form. name is its member in the request. */
export interface Spec {
  name: string
  label: string
  hint?: string
  kind: 'check' | 'text' | 'number' | 'size' | 'list' | 'choice' | 'area' | 'secret'
  choices?: { value: string; text: string }[]
}

export type Values = Record<string, unknown>
export type Draft = Record<string, string | boolean>

/** Returns a setting's value as its control shows it. */
export function shown(spec: Spec, value: unknown): string | boolean {
  switch (spec.kind) {
    case 'check':
      return value === true
    case 'list':
      return Array.isArray(value) ? value.join('\n') : ''
    case 'size':
      return typeof value === 'number' ? exactSize(value) : ''
    case 'secret':
      return '' // never shown
    default:
      return value === undefined || value === null ? '' : String(value)
  }
}

/** Returns what a control means for the API. It throws an Error that names the control. */
export function parsed(spec: Spec, input: string | boolean): unknown {
  if (typeof input === 'boolean') return input

  switch (spec.kind) {
    case 'number': {
      const n = Number(input)
      if (input.trim() === '' || !Number.isSafeInteger(n)) throw new Error(texts.mustBeAWholeNumber(spec.label))
      return n
    }
    case 'size': {
      const n = parseSize(input)
      if (n === null) throw new Error(texts.mustBeASizeSuch(spec.label))
      return n
    }
    case 'list':
      return input.split('\n').map((line) => line.trim()).filter((line) => line !== '')
    default:
      return input
  }
}

/** Returns the members of a draft that differ from values, ready to send. */
export function changes(specs: Spec[], draft: Draft, values: Values): Values {
  const changed = specs.filter((s) => {
    const input = draft[s.name]
    return input !== undefined && input !== shown(s, values[s.name])
  })

  return Object.fromEntries(changed.map((s) => [s.name, parsed(s, draft[s.name] ?? '')]))
}

/** Returns an object with names as requests have them: siteUrl becomes site_url. */
export function requestNames(content: object): Values {
  return Object.fromEntries(Object.entries(content).map(([name, value]) =>
    [name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`), value]))
}
