/** Types of fields and the rules that each type takes. */

import { texts } from '#texts/forms'
import type { Schemas } from '../../api/client'

export type FormField = Schemas['FormField']

export const fieldTypes = {
  text: texts.textOneLine, textarea: texts.textManyLines, number: texts.number, email: texts.eMailAddress, url: texts.webAddress,
  phone: texts.phoneNumber, date: texts.date, time: texts.time, datetime: texts.dateAndTime, checkbox: texts.yesOrNo,
  radio: texts.oneOfAFewOptions, select: texts.oneOfAList, multiselect: texts.severalOptions, rating: texts.rating, file: texts.file,
} as const

export type FieldType = keyof typeof fieldTypes

export type Rule = 'options' | 'length' | 'range' | 'pattern' | 'dates' | 'default'

const textRules: Rule[] = ['length', 'pattern', 'default']
const rules: Record<FieldType, Rule[]> = {
  text: textRules, textarea: textRules, email: textRules, url: textRules, phone: textRules,
  number: ['range', 'default'], rating: ['range', 'default'],
  date: ['dates', 'default'], time: ['dates', 'default'], datetime: ['dates', 'default'],
  checkbox: ['default'], radio: ['options', 'default'], select: ['options', 'default'],
  multiselect: ['options', 'default'], file: [],
}

/** Reports whether fields of a type take a rule. */
export function takes(type: FieldType, rule: Rule): boolean {
  return rules[type].includes(rule)
}

/** What a person types about a field. Every member is the text of its input. */
export interface FieldDraft {
  type: FieldType
  label: string
  name: string
  description: string
  required: boolean
  options: string // one a line
  minLength: string
  maxLength: string
  minValue: string
  maxValue: string
  pattern: string
  startDate: string
  endDate: string
  dateFormat: string
  defaultValue: string
}

/** Returns the draft of a new field, or of an existing one. */
export function draftOf(field?: FormField, name?: string | null): FieldDraft {
  const text = (value: string | number | null | undefined) => (value === null || value === undefined ? '' : String(value))

  return {
    type: field !== undefined && field.type in fieldTypes ? (field.type as FieldType) : 'text',
    label: text(field?.label), name: text(name), description: text(field?.description), required: field?.isRequired ?? false,
    options: optionsOf(field?.options).join('\n'),
    minLength: text(field?.minLength), maxLength: text(field?.maxLength),
    minValue: text(field?.minValue), maxValue: text(field?.maxValue), pattern: text(field?.pattern),
    startDate: text(field?.startDate), endDate: text(field?.endDate), dateFormat: text(field?.dateFormat),
    defaultValue: text(field?.defaultValue),
  }
}

/** Reads the JSON array of a field's options. */
export function optionsOf(text: string | null | undefined): string[] {
  if (!text) return []

  try {
    const value: unknown = JSON.parse(text)
    return Array.isArray(value) ? value.map(String) : []
  } catch {
    return text.split(',').map((o) => o.trim())
  }
}

/** Returns the body of a request. Rules that the type does not take are null. */
export function bodyOf(d: FieldDraft): Schemas['UpdateFieldBody'] {
  const text = (rule: Rule, value: string) => (takes(d.type, rule) && value !== '' ? value : null)
  const number = (rule: Rule, value: string) => (takes(d.type, rule) && value !== '' ? Number(value) : null)
  const options = d.options.split('\n').map((o) => o.trim()).filter((o) => o !== '')

  return {
    type: d.type, label: d.label, is_required: d.required,
    name: d.name === '' ? null : d.name, description: d.description === '' ? null : d.description,
    options: takes(d.type, 'options') ? JSON.stringify(options) : null,
    min_length: number('length', d.minLength), max_length: number('length', d.maxLength),
    min_value: number('range', d.minValue), max_value: number('range', d.maxValue),
    pattern: text('pattern', d.pattern),
    start_date: text('dates', d.startDate), end_date: text('dates', d.endDate), date_format: text('dates', d.dateFormat),
    default_value: text('default', d.defaultValue),
  }
}

/** Says a field's rules in a few words. */
export function rulesText(f: FormField): string {
  const parts: string[] = []
  const options = optionsOf(f.options)
  if (options.length > 0) parts.push(options.length > 4 ? texts.countOptions(options.length) : options.join(', '))
  range(parts, f.minLength, f.maxLength, ' characters')
  range(parts, f.minValue, f.maxValue, '')
  range(parts, f.startDate, f.endDate, '')
  if (f.pattern !== null) parts.push(texts.matchesPattern(f.pattern))
  if (f.dateFormat !== null) parts.push(f.dateFormat)
  if (f.defaultValue !== null) parts.push(`default ${f.defaultValue}`)

  return parts.join(' · ')
}

function range(parts: string[], from: string | number | null, to: string | number | null, unit: string) {
  if (from !== null && to !== null) parts.push(texts.fromToUnit(from, to, unit))
  else if (from !== null) parts.push(`from ${from}${unit}`)
  else if (to !== null) parts.push(texts.upToUnit(to, unit))
}

/** Returns the ids with one moved by a number of places. */
export function moved(ids: string[], id: string, by: number): string[] {
  const from = ids.indexOf(id)
  const to = Math.min(ids.length - 1, Math.max(0, from + by))
  const next = ids.filter((other) => other !== id)
  next.splice(to, 0, id)

  return next
}
