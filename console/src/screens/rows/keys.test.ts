import { expect, test } from 'vitest'
import { moved, scrolledTo } from './keys'

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

test.each([
  [100, 30, 90, 200, 90], // in sight
  [50, 30, 90, 200, 50], // a little above
  [280, 30, 90, 200, 110], // a little below
  [5000, 30, 0, 200, 4915], // far
  [0, 30, 5000, 200, 0],
  [100, 400, 90, 200, 100], // larger than the room
])('scrolledTo %i+%i at %i in %i', (start, size, offset, room, want) => {
  expect(scrolledTo(start, size, offset, room)).toBe(want)
})
