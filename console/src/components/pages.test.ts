import { expect, test } from 'vitest'
import { allItems } from './pages'

const list = (length: number) => {
  const asked: number[] = []
  const load = (page: number) => {
    asked.push(page)
    return Promise.resolve({ content: [page], metadata: { totalPages: length } })
  }
  return { asked, load }
}

test('every page is asked for once, and the items keep their order', async () => {
  const { asked, load } = list(8)
  expect(await allItems(load)).toEqual([1, 2, 3, 4, 5, 6, 7, 8])
  expect(asked).toHaveLength(8)
})

test('an empty list is one request, and a list without end has one', async () => {
  const empty = list(0)
  await allItems(empty.load)
  expect(empty.asked).toEqual([1])

  const long = list(1_000_000)
  expect(await allItems(long.load)).toHaveLength(100)
})
