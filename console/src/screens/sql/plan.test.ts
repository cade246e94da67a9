import { expect, test } from 'vitest'
import { planOf } from './plan'

const analyzed = [{
  'Plan': {
    'Node Type': 'Nested Loop', 'Join Type': 'Left', 'Total Cost': 10, 'Plan Rows': 5, 'Actual Total Time': 4,
    'Actual Rows': 5, 'Actual Loops': 1,
    'Plans': [
      { 'Node Type': 'Seq Scan', 'Relation Name': 'books', 'Total Cost': 4, 'Plan Rows': 9, 'Actual Total Time': 1,
        'Actual Rows': 5, 'Actual Loops': 1, 'Filter': '(price > 1)', 'Rows Removed by Filter': 3 },
      { 'Node Type': 'Index Scan', 'Relation Name': 'authors', 'Index Name': 'authors_pkey', 'Total Cost': 1,
        'Plan Rows': 1, 'Actual Total Time': 0.5, 'Actual Rows': 1, 'Actual Loops': 5 },
    ],
  },
  'Planning Time': 0.25, 'Execution Time': 4.5,
}]

test('steps have their depth, their own time and their share', () => {
  const plan = planOf(analyzed)!
  expect(plan.steps.map((s) => [s.depth, s.title, s.totalMs, s.ownMs, s.share])).toEqual([
    [0, 'Nested Loop (Left)', 4, 0.5, 0.125],
    [1, 'Seq Scan on books', 1, 1, 0.25],
    [1, 'Index Scan on authors by authors_pkey', 2.5, 2.5, 0.625],
  ])
  expect(plan.steps[1]!.details).toEqual(['Filter: (price > 1)', 'Rows Removed by Filter: 3'])
  expect([plan.planningMs, plan.executionMs]).toEqual([0.25, 4.5])
})

test('a plan that did not run is measured by cost', () => {
  const plan = planOf([{ Plan: { 'Node Type': 'Result', 'Total Cost': 2, 'Plan Rows': 1 } }])!
  expect(plan.steps[0]).toMatchObject({ totalMs: null, share: 1, rows: null })
})

test('anything else is no plan', () => {
  expect(planOf(null)).toBeNull()
  expect(planOf([{ a: 1 }])).toBeNull()
})
