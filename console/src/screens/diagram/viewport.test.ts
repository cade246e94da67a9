import { expect, test } from 'vitest'
import { fitted, zoomed } from './viewport'

test('fitted shows all, in the middle', () => {
  expect(fitted({ width: 1904, height: 100 }, { width: 1000, height: 500 })).toEqual({ x: 24, y: 225, scale: 0.5 })
  expect(fitted({ width: 100, height: 100 }, { width: 300, height: 300 })).toEqual({ x: 100, y: 100, scale: 1 })
  expect(fitted({ width: 0, height: 0 }, { width: 0, height: 0 }).scale).toBe(0.1)
})

test('zoomed keeps the point under the pointer, within bounds', () => {
  const view = { x: 10, y: 20, scale: 1 }
  expect(zoomed(view, 2, { x: 110, y: 120 })).toEqual({ x: -90, y: -80, scale: 2 })
  expect(zoomed(view, 100, { x: 0, y: 0 }).scale).toBe(3)
  expect(zoomed(view, 0.001, { x: 0, y: 0 }).scale).toBe(0.1)
})
