/** Who may do what with the rows of a table, and why: grants first, then policies. */

import type { Schemas } from '../../api/client'

type Policy = Pick<Schemas['Policy'], 'name' | 'command' | 'roles' | 'permissive' | 'using' | 'withCheck'>
type Grant = Pick<Schemas['Grant'], 'role' | 'privileges'>

export const commands = ['select', 'insert', 'update', 'delete'] as const
export type Command = (typeof commands)[number]

export interface Rules {
  grants: Grant[]
  policies: Policy[]
  rowSecurity: boolean
}

export interface Condition {
  policy: string
  text: string
  restrictive: boolean
}

/** What a role may do. conditions choose the rows, where there are some. */
export interface Verdict {
  kind: 'all' | 'some' | 'none' | 'refused'
  reason: string
  conditions: Condition[]
}

const unrestricted = 'service_role' // policies do not restrict it
const acts: Record<Command, string> = { select: 'reads', insert: 'inserts', update: 'changes', delete: 'deletes' }

/** Returns what a role may do with a table's rows. */
export function verdictOf(role: string, command: Command, rules: Rules): Verdict {
  const own = alone(role, command, rules)
  if ((command !== 'update' && command !== 'delete') || own.kind === 'refused' || own.kind === 'none') return own

  const reads = alone(role, 'select', rules)
  switch (reads.kind) {
    case 'refused':
      return { kind: 'refused', conditions: [], reason: `${command} is granted, but select is not: a request finds its rows by it.` }
    case 'none':
      return { kind: 'none', conditions: [], reason: `A policy allows ${command}, but none allows select: the role finds no row.` }
    case 'some':
      return own.kind === 'all'
        ? { kind: 'some', reason: `${own.reason} The role must be able to read the row.`, conditions: reads.conditions }
        : { ...own, reason: `${own.reason} The role must be able to read the row, too.` }
    case 'all':
      return own
  }
}

function alone(role: string, command: Command, { grants, policies, rowSecurity }: Rules): Verdict {
  const grant = grants.find((g) => applies(g.role, role) && g.privileges.includes(command))
  if (grant === undefined) {
    return { kind: 'refused', conditions: [], reason: `No grant of ${command} on the table.` }
  }

  const granted = `Granted to ${grant.role}.`
  if (role === unrestricted) return { kind: 'all', conditions: [], reason: `${granted} Policies do not restrict this role.` }
  if (!rowSecurity) return { kind: 'all', conditions: [], reason: `${granted} Row level security is off.` }

  const relevant = policies.filter((p) => (p.command === 'all' || p.command === command) && p.roles.some((r) => applies(r, role)))
  const permissive = relevant.filter((p) => p.permissive)
  const restrictive = relevant.filter((p) => !p.permissive)
  if (permissive.length === 0) {
    return { kind: 'none', conditions: [], reason: `${granted} No policy lets the role ${command} a row.` }
  }

  const open = permissive.find((p) => isAlwaysTrue(p, command))
  if (open !== undefined && restrictive.every((p) => isAlwaysTrue(p, command))) {
    return { kind: 'all', conditions: [], reason: `${granted} The policy ${open.name} allows every row.` }
  }

  return {
    kind: 'some',
    reason: `${granted} The role ${acts[command]} rows that ${permissive.length > 1 ? 'one of its policies allows' : 'its policy allows'}.`,
    conditions: [...permissive, ...restrictive].map((p) => conditionOf(p, command)),
  }
}

const applies = (to: string, role: string) => to === role || to === 'public'
const isAlwaysTrue = (p: Policy, command: Command) => textsOf(p, command).every((text) => text === 'true')

/** Returns the conditions of a policy on existing rows, and on rows as they are written. */
function textsOf({ using, withCheck }: Policy, command: Command): string[] {
  const written = withCheck ?? using ?? 'true'
  switch (command) {
    case 'select':
    case 'delete': return [using ?? 'true']
    case 'insert': return [written]
    case 'update': return written === using ? [written] : [using ?? 'true', written]
  }
}

function conditionOf(p: Policy, command: Command): Condition {
  const [existing = '', written] = textsOf(p, command)
  const text = written === undefined ? existing : `${existing}; as written: ${written}`

  return { policy: p.name, text, restrictive: !p.permissive }
}
