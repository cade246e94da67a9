/** The SQL that a change of a table amounts to, and the lock that it takes. */

import { identifier, literal, tableIdentifier } from '../../components/sqlText'

export interface Change {
  sql: string
  lock: string
}

export interface ColumnDraft {
  name: string
  type: string
  defaultValue: string
  notNull: boolean
  unique: boolean
  primary: boolean
  comment: string
  referenceTable: string
  referenceColumn: string
  using: string
}

const exclusive = 'Reads and writes of the table wait while it runs.'
const rewrites = 'Reads and writes of the table wait while it checks or rewrites all rows.'
const writesWait = 'Writes wait while it checks all rows; reads go on.'
const brief = 'Reads and writes go on, but for an instant.'

/** Returns a default of the API's form as SQL: calls and literals as they are, bare values quoted. */
export function defaultExpression(value: string): string {
  const isCall = /^[a-z_]+\(\)$|^(current|local)_?(timestamp|date|time)$/i.test(value)
  return isCall || value.startsWith("'") || /^(-?\d+(\.\d+)?|true|false)$/i.test(value) ? value : literal(value)
}

export function addColumn(table: string, c: ColumnDraft): Change {
  const parts = [`alter table ${tableIdentifier(table)} add column ${identifier(c.name || 'name')} ${c.type || 'type'}`]
  if (c.defaultValue !== '') parts.push(`default ${defaultExpression(c.defaultValue)}`)
  if (c.primary) parts.push('primary key')
  else if (c.notNull) parts.push('not null')
  if (c.unique && !c.primary) parts.push('unique')
  if (c.referenceTable !== '') {
    parts.push(`references ${tableIdentifier(c.referenceTable)} (${identifier(c.referenceColumn)})`)
  }

  const comment = c.comment === '' ? '' : `\n${commentOn(table, c)}`
  return { sql: `${parts.join(' ')};${comment}`, lock: c.unique || c.primary ? rewrites : brief }
}

export function alterColumn(table: string, former: ColumnDraft, next: ColumnDraft): Change {
  const on = `alter table ${tableIdentifier(table)}`
  const column = `${on} alter column ${identifier(former.name)}`
  const sql: string[] = []
  let lock = brief

  if (next.type !== former.type) {
    sql.push(`${column} type ${next.type} using ${identifier(former.name)}::${next.type};`)
    lock = rewrites
  }
  if (next.defaultValue !== former.defaultValue) {
    sql.push(next.defaultValue === ''
      ? `${column} drop default;`
      : `${column} set default ${defaultExpression(next.defaultValue)};`)
  }
  if (next.notNull !== former.notNull) {
    sql.push(`${column} ${next.notNull ? 'set' : 'drop'} not null;`)
    if (next.notNull) lock = rewrites
  }
  if (next.unique !== former.unique) {
    sql.push(next.unique
      ? `${on} add unique (${identifier(former.name)});`
      : `${on} drop constraint … ; -- the unique constraint of ${identifier(former.name)}`)
    if (next.unique) lock = rewrites
  }
  if (next.name !== former.name) {
    sql.push(`${on} rename column ${identifier(former.name)} to ${identifier(next.name)};`)
  }
  if (next.comment !== former.comment) sql.push(commentOn(table, next))

  return { sql: sql.join('\n'), lock }
}

export const dropColumn = (table: string, column: string, cascade: boolean): Change => ({
  sql: `alter table ${tableIdentifier(table)} drop column ${identifier(column)}${cascade ? ' cascade' : ''};`,
  lock: brief,
})

export interface IndexDraft {
  name: string
  keys: string[] // expressions
  include: string[]
  method: string
  unique: boolean
  where: string
}

export function createIndex(table: string, i: IndexDraft): Change {
  const name = i.name === '' ? '' : `${identifier(i.name)} `
  const include = i.include.length === 0 ? '' : ` include (${i.include.map(identifier).join(', ')})`
  const where = i.where === '' ? '' : ` where ${i.where}`
  return {
    sql: `create ${i.unique ? 'unique ' : ''}index ${name}on ${tableIdentifier(table)} using ${i.method} ` +
      `(${i.keys.join(', ')})${include}${where};`,
    lock: 'Writes wait while it is built. On a table of more than 100,000 rows it is built concurrently instead.',
  }
}

export interface ConstraintDraft {
  type: 'check' | 'unique' | 'primary' | 'foreign'
  name: string
  columns: string[]
  expression: string
  referenceTable: string
  referenceColumns: string[]
  onDelete: string
  onUpdate: string
  notValid: boolean
  deferrable: boolean
  initiallyDeferred: boolean
}

export function addConstraint(table: string, c: ConstraintDraft): Change {
  const columns = c.columns.map(identifier).join(', ')
  const name = c.name === '' ? '' : ` constraint ${identifier(c.name)}`
  const deferred = !c.deferrable || c.type === 'check'
    ? '' : ` deferrable${c.initiallyDeferred ? ' initially deferred' : ''}`
  const end = `${deferred}${c.notValid && !isKey(c.type) ? ' not valid' : ''};`
  const start = `alter table ${tableIdentifier(table)} add${name}`

  switch (c.type) {
    case 'check':
      return { sql: `${start} check (${c.expression || '…'})${end}`, lock: c.notValid ? brief : rewrites }
    case 'unique':
      return { sql: `${start} unique (${columns})${end}`, lock: rewrites }
    case 'primary':
      return { sql: `${start} primary key (${columns})${end}`, lock: rewrites }
    case 'foreign':
      return {
        sql: `${start} foreign key (${columns}) references ${c.referenceTable === '' ? '…' : tableIdentifier(c.referenceTable)} ` +
          `(${c.referenceColumns.map(identifier).join(', ')})${action('delete', c.onDelete)}${action('update', c.onUpdate)}${end}`,
        lock: c.notValid ? brief : `${writesWait} Both tables are concerned.`,
      }
  }
}

export interface PolicyDraft {
  name: string
  command: 'all' | 'select' | 'insert' | 'update' | 'delete'
  roles: string[]
  permissive: boolean
  using: string
  withCheck: string
}

export function createPolicy(table: string, p: PolicyDraft): Change {
  const lines = [`create policy ${identifier(p.name || 'name')} on ${tableIdentifier(table)}`]
  if (!p.permissive) lines.push('  as restrictive')
  lines.push(`  for ${p.command} to ${p.roles.join(', ') || '…'}`)
  if (p.using !== '' && p.command !== 'insert') lines.push(`  using (${p.using})`)
  if (p.withCheck !== '' && writes(p.command)) lines.push(`  with check (${p.withCheck})`)

  return { sql: `${lines.join('\n')};`, lock: exclusive }
}

export const writes = (command: PolicyDraft['command']) => command !== 'select' && command !== 'delete'
const isKey = (type: ConstraintDraft['type']) => type === 'unique' || type === 'primary'
const action = (event: string, to: string) => (to === 'no action' ? '' : ` on ${event} ${to}`)
const commentOn = (table: string, c: ColumnDraft) =>
  `comment on column ${tableIdentifier(table)}.${identifier(c.name)} is ${c.comment === '' ? 'null' : literal(c.comment)};`
