/** Filters and sorting: as the URL has them and as the rows API takes them. */

import { texts } from '#texts/rows'
import type { Column } from './types'

export interface Filter {
  column: string
  operator: Operator
  value: string
}

export interface Sort {
  column: string
  descending: boolean
}

export const operators = {
  eq: texts.isEqualTo,
  neq: texts.isNotEqualTo,
  gt: texts.isGreaterThan,
  gte: texts.isAtLeast,
  lt: texts.isLessThan,
  lte: texts.isAtMost,
  ilike: 'contains',
  'not.ilike': texts.doesNotContain,
  like: texts.matchesThePattern,
  match: texts.matchesTheExpression,
  in: texts.isOneOf,
  null: texts.isNull,
  notnull: texts.isNotNull,
  cs: texts.hasAllOf,
} as const

export type Operator = keyof typeof operators

export const isOperator = (text: string): text is Operator => Object.hasOwn(operators, text)

/** Returns the operators that make sense for a column. */
export function operatorsOf(column: Column | undefined): Operator[] {
  const order: Operator[] = ['eq', 'neq', 'gt', 'gte', 'lt', 'lte', 'in', 'null', 'notnull']
  switch (column?.kind) {
    case 'text': return ['ilike', 'not.ilike', 'like', 'match', ...order]
    case 'boolean': return ['eq', 'neq', 'null', 'notnull']
    case 'json': return ['cs', 'null', 'notnull']
    case 'array': return ['cs', 'eq', 'neq', 'null', 'notnull']
    case 'bytea': return ['null', 'notnull']
    default: return order
  }
}

export const needsValue = (operator: Operator): boolean => operator !== 'null' && operator !== 'notnull'

/** Reads filters from the URL: `price=gt.10&title=ilike.moby`. */
export function readFilters(text: string): Filter[] {
  return [...new URLSearchParams(text)].flatMap(([column, condition]) => {
    const name = Object.keys(operators).find((o) => condition === o || condition.startsWith(`${o}.`))
    if (name === undefined || !isOperator(name)) return []
    return [{ column, operator: name, value: condition.slice(name.length + 1) }]
  })
}

export function writeFilters(filters: Filter[]): string {
  const search = new URLSearchParams()
  for (const f of filters) search.append(f.column, needsValue(f.operator) ? `${f.operator}.${f.value}` : f.operator)

  return search.toString()
}

/** Reads sorting from the URL: `price.desc,title`. */
export function readSort(text: string): Sort[] {
  return text.split(',').filter((part) => part !== '').map((part) => ({
    column: decodeURIComponent(part.replace(/\.desc$/, '')),
    descending: part.endsWith('.desc'),
  }))
}

export function writeSort(sort: Sort[]): string {
  return sort.map((s) => encodeURIComponent(s.column).replaceAll('.', '%2E') + (s.descending ? '.desc' : '')).join(',')
}

const reserved = new Set(['select', 'order', 'limit', 'offset', 'columns', 'on_conflict', 'and', 'or', 'not'])

/** Quotes a column's name for a query of the rows API, if it must be. */
export function quoteName(name: string): string {
  return /^[A-Za-z_][A-Za-z0-9_]*$/.test(name) && !reserved.has(name) ? name : quoteValue(name)
}

/** Quotes a value inside of parentheses. */
export function quoteValue(text: string): string {
  return `"${text.replaceAll('\\', '\\\\').replaceAll('"', '\\"')}"`
}

/** Returns a filter as a parameter of the rows API. */
export function parameterOf({ column, operator, value }: Filter): [string, string] {
  return [quoteName(column), conditionOf(operator, value)]
}

function conditionOf(operator: Operator, value: string): string {
  switch (operator) {
    case 'null': return 'is.null'
    case 'notnull': return 'not.is.null'
    case 'ilike':
    case 'not.ilike': return `${operator}.*${escapePattern(value)}*`
    case 'in': return `in.(${value.split(',').map((v) => quoteValue(v.trim())).join(',')})`
    default: return `${operator}.${value}`
  }
}

/** The API takes * for %, so that only a real pattern has wildcards. */
function escapePattern(text: string): string {
  return text.replace(/[\\%_]/g, '\\$&')
}
