/** What the grid knows about column types. */

export type Kind =
  | 'text' | 'number' | 'boolean' | 'json' | 'array' | 'bytea' | 'uuid' | 'enum'
  | 'timestamp' | 'date' | 'time' | 'other'

export interface Reference {
  table: string // schema.table
  column: string
}

export interface Column {
  name: string
  type: string
  kind: Kind
  notNull: boolean
  primary: boolean
  defaultValue: string
  reference: Reference | null
  values: string[] // of an enum
  comment: string
}

const kinds: Record<string, Kind> = {
  text: 'text', varchar: 'text', char: 'text', citext: 'text', name: 'text', 'character varying': 'text', character: 'text',
  smallint: 'number', integer: 'number', bigint: 'number', numeric: 'number', real: 'number', 'double precision': 'number',
  oid: 'number', int16: 'number', int32: 'number', int64: 'number',
  boolean: 'boolean', json: 'json', jsonb: 'json', bytea: 'bytea', uuid: 'uuid',
  timestamp: 'timestamp', timestamptz: 'timestamp', 'timestamp with time zone': 'timestamp',
  'timestamp without time zone': 'timestamp', date: 'date',
  time: 'time', timetz: 'time', 'time with time zone': 'time', 'time without time zone': 'time',
}

/** Returns the kind of a type as the API prints it; values are those of an enum. */
export function kindOf(type: string, values: string[] = []): Kind {
  if (type.endsWith('[]')) return 'array'
  if (values.length > 0) return 'enum'

  const name = type.replace(/\s*\([^)]*\)/, '')
  return Object.hasOwn(kinds, name) ? kinds[name]! : 'other'
}

const widths: Record<Kind, number> = {
  text: 220, number: 120, boolean: 90, json: 240, array: 160, bytea: 140, uuid: 290, enum: 120,
  timestamp: 255, date: 120, time: 130, other: 180,
}

/** The width of a column until the person changes it, in pixels. */
export function defaultWidth(column: Column): number {
  const forName = column.name.length * 8 + 68
  return Math.min(Math.max(widths[column.kind], forName), 320)
}

/** Splits "schema.table" at its first dot. */
export function splitName(fullName: string): [schema: string, name: string] {
  const dot = fullName.indexOf('.')
  return dot < 0 ? ['public', fullName] : [fullName.slice(0, dot), fullName.slice(dot + 1)]
}
