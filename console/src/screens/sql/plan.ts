/** Reads the JSON of EXPLAIN. */

export interface Step {
  depth: number
  title: string // such as Index Scan on books
  details: string[] // conditions and keys
  totalMs: number | null // of all loops, with the steps below; null: not run
  ownMs: number | null // without the steps below
  share: number // of the whole time, or of the whole cost if it did not run: 0 to 1
  rows: number | null
  plannedRows: number
  loops: number
}

export interface Plan {
  steps: Step[]
  planningMs: number | null
  executionMs: number | null
}

interface Node {
  'Node Type': string
  'Total Cost': number
  'Plan Rows': number
  'Actual Total Time'?: number
  'Actual Rows'?: number
  'Actual Loops'?: number
  Plans?: Node[]
  [member: string]: unknown
}

const shown = [
  'Filter', 'Index Cond', 'Recheck Cond', 'Hash Cond', 'Merge Cond', 'Join Filter', 'Sort Key', 'Group Key',
  'Cache Key', 'Sort Method', 'Rows Removed by Filter', 'Rows Removed by Join Filter', 'Heap Fetches', 'Subplan Name',
]

/** Returns the steps of a plan from the root down, or null if the value is no plan. */
export function planOf(value: unknown): Plan | null {
  const first: unknown = Array.isArray(value) ? value[0] : undefined
  if (typeof first !== 'object' || first === null || !('Plan' in first)) return null

  const root = first.Plan as Node
  const whole = timeOf(root) ?? root['Total Cost']
  const steps: Step[] = []
  collect(root, 0, whole, steps)

  return { steps, planningMs: numberOf(first, 'Planning Time'), executionMs: numberOf(first, 'Execution Time') }
}

function collect(node: Node, depth: number, whole: number, steps: Step[]): void {
  const below = node.Plans ?? []
  const total = timeOf(node)
  const own = total === null ? null : Math.max(0, total - sum(below.map((n) => timeOf(n) ?? 0)))
  const ownCost = Math.max(0, node['Total Cost'] - sum(below.map((n) => n['Total Cost'])))

  steps.push({
    depth, title: titleOf(node), details: detailsOf(node), totalMs: total, ownMs: own,
    share: whole <= 0 ? 0 : Math.min(1, (own ?? ownCost) / whole),
    rows: node['Actual Rows'] ?? null, plannedRows: node['Plan Rows'], loops: node['Actual Loops'] ?? 0,
  })
  for (const child of below) collect(child, depth + 1, whole, steps)
}

/** Times of a node are of one loop, on average. */
function timeOf(node: Node): number | null {
  const time = node['Actual Total Time']
  return time === undefined ? null : time * (node['Actual Loops'] ?? 1)
}

function titleOf(node: Node): string {
  const join = node['Join Type'] !== undefined && node['Join Type'] !== 'Inner' ? ` (${String(node['Join Type'])})` : ''
  const index = node['Index Name'] === undefined ? '' : ` by ${String(node['Index Name'])}`
  const object = node['Relation Name'] ?? node['CTE Name'] ?? node['Function Name']
  return `${node['Node Type']}${join}${object === undefined ? '' : ` on ${String(object)}`}${index}`
}

function detailsOf(node: Node): string[] {
  return shown.filter((name) => node[name] !== undefined && node[name] !== 0).map((name) => {
    const value = node[name]
    return `${name}: ${Array.isArray(value) ? value.join(', ') : String(value)}`
  })
}

function numberOf(object: object, name: string): number | null {
  const value = (object as Record<string, unknown>)[name]
  return typeof value === 'number' ? value : null
}

const sum = (numbers: number[]) => numbers.reduce((a, b) => a + b, 0)
