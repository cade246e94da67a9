import { expect, test } from 'vitest'
import { moved } from './keys'

const bounds = { first: 10, last: 99, columnCount: 5 }
const at = { index: 50, column: 2 }

test.each([
  ['ArrowDown', false, { index: 51, column: 2 }],
  ['ArrowUp', true, { index: 10, column: 2 }],
  ['ArrowRight', true, { index: 50, column: 4 }],
  ['Home', false, { index: 50, column: 0 }],
  ['End', true, { index: 99, column: 4 }],
  ['PageDown', false, { index: 65, column: 2 }],
  ['x', false, null],
])('%s leads on', (key, ctrl, want) => {
  expect(moved(at, key, ctrl, bounds)).toEqual(want)
})

test('the edges hold', () => {
  expect(moved({ index: 99, column: 4 }, 'ArrowDown', false, bounds)).toEqual({ index: 99, column: 4 })
  expect(moved({ index: 10, column: 0 }, 'ArrowLeft', false, bounds)).toEqual({ index: 10, column: 0 })
})
