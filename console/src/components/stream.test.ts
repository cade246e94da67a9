import { expect, test } from 'vitest'
import { eventsOf } from './stream'

async function read(...parts: string[]) {
  const body = new ReadableStream<Uint8Array>({
    start(c) {
      for (const part of parts) c.enqueue(new TextEncoder().encode(part))
      c.close()
    },
  })
  const all = []
  for await (const e of eventsOf(body)) all.push(e)

  return all
}

test('events that arrive in pieces', async () => {
  expect(await read('id: 1\nevent: INS', 'ERT\ndata: {"a":"é', '"}\n\nid: 2\n\n', 'event: resync\ndata: x\ndata: y\n\nevent: cut')).toEqual([
    { id: '1', kind: 'INSERT', data: '{"a":"é"}' },
    { id: '2', kind: '', data: '' },
    { id: '', kind: 'resync', data: 'x\ny' },
  ])
})

test('a letter that is cut in two', async () => {
  const bytes = new TextEncoder().encode('event: a\ndata: 📚\n\n')
  const body = new ReadableStream<Uint8Array>({
    start(c) {
      c.enqueue(bytes.slice(0, 17))
      c.enqueue(bytes.slice(17))
      c.close()
    },
  })
  for await (const e of eventsOf(body)) expect(e.data).toBe('📚')
})
