/** Lists that a screen needs whole, such as the choices of a field. */

export const pageLimit = 100 // the API's maximum
const atOnce = 5 // pages
const maxPages = 100

interface Page<Item> {
  content: Item[]
  metadata: { totalPages: number }
}

/** Returns the pages of a list, ten thousand items at most. load asks for one of them, of pageLimit items. */
export async function allPages<P extends Page<unknown>>(load: (page: number) => Promise<P>): Promise<P[]> {
  const first = await load(1)
  const pages = [first]
  const last = Math.min(first.metadata.totalPages, maxPages)
  for (let n = 2; n <= last; n += atOnce) {
    const numbers = Array.from({ length: Math.min(atOnce, last - n + 1) }, (_, i) => n + i)
    pages.push(...await Promise.all(numbers.map(load)))
  }

  return pages
}

/** Returns the items of all pages. */
export async function allItems<Item>(load: (page: number) => Promise<Page<Item>>): Promise<Item[]> {
  return (await allPages(load)).flatMap((page) => page.content)
}
