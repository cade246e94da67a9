import { expect, test } from 'vitest'
import { cut, layOut, type Layout, type Table } from './layout'

const column = (name: string, to = '') => ({
  name, type: 'bigint', primary: name === 'id', reference: to === '' ? null : { table: to, column: 'id' },
})
const table = (name: string, ...to: string[]): Table =>
  ({ name, columns: [column('id'), ...to.map((t) => column(`${t}_id`, t))] })
const at = (layout: Layout, name: string) => layout.boxes.find((b) => b.table.name === name)!

function overlaps({ boxes }: Layout): string[] {
  return boxes.flatMap((a, i) => boxes.slice(i + 1).filter((b) =>
    a.x < b.x + b.width && b.x < a.x + a.width && a.y < b.y + b.height && b.y < a.y + a.height)
    .map((b) => `${a.table.name} and ${b.table.name}`))
}

test('a referenced table stands on the left of those that refer to it', () => {
  const layout = layOut([table('lines', 'orders', 'books'), table('orders', 'people'), table('people'), table('books')], 'all')
  expect(at(layout, 'people').x).toBeLessThan(at(layout, 'orders').x)
  expect(at(layout, 'orders').x).toBeLessThan(at(layout, 'lines').x)
  expect(layout.edges.map((e) => `${e.from} ${e.to}`)).toEqual(['lines orders', 'lines books', 'orders people'])
})

test.each<[string, Table[]]>([
  ['nothing', []],
  ['one table', [table('a')]],
  ['itself', [table('a', 'a')]],
  ['a circle', [table('a', 'b'), table('b', 'c'), table('c', 'a')]],
  ['a table that is not in the picture', [table('a', 'elsewhere')]],
  ['a star of 60', [table('hub'), ...Array.from({ length: 59 }, (_, i) => table(`t${i}`, 'hub'))]],
  ['120 in a chain, and 80 alone', [...Array.from({ length: 120 }, (_, i) => table(`t${i}`, ...(i > 0 ? [`t${i - 1}`] : []))),
    ...Array.from({ length: 80 }, (_, i) => table(`alone${i}`))]],
  ['a table of 1600 columns', [{ name: 'wide', columns: Array.from({ length: 1600 }, (_, i) => column(`c${i}`)) }]],
])('%s: all in the picture, none over another', (_, tables) => {
  for (const detail of ['all', 'keys'] as const) {
    const layout = layOut(tables, detail)
    expect(layout.boxes.length).toBe(tables.length)
    expect(overlaps(layout)).toEqual([])
    for (const b of layout.boxes) {
      expect([b.x, b.y].every((n) => Number.isFinite(n) && n >= 0)).toBe(true)
      expect(b.x + b.width <= layout.width && b.y + b.height <= layout.height).toBe(true)
    }
  }
})

test('keys alone leave out other columns and say how many', () => {
  const [box] = layOut([{ name: 'a', columns: [column('id'), column('note')] }], 'keys').boxes
  expect([box?.shown.map((c) => c.name), box?.hidden]).toEqual([['id'], 1])
})

test.each([['short', 9, 'short'], ['much longer', 6, 'much …'], ['書籍書籍', 5, '書籍…'], ['', 3, '']])(
  'cut(%j, %d)', (text, chars, want) => expect(cut(text, chars)).toBe(want))
