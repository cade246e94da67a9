import { expect, test } from 'vitest'
import { reduce, startable, type UploadState } from './uploads'

const upload = (id: number, status: UploadState['status']) => (
  { id, status, fullName: `${id}`, sent: 0, error: null, replaces: false, file: new File(['x'], 'x') }
)

test('three uploads run at once', () => {
  const state = [upload(1, 'running'), upload(2, 'done'), upload(3, 'waiting'), upload(4, 'waiting'), upload(5, 'waiting')]

  expect(startable(state).map((u) => u.id)).toEqual([3, 4])
  expect(startable(reduce(state, { kind: 'set', id: 1, patch: { status: 'failed' } })).map((u) => u.id)).toEqual([3, 4, 5])
})

test('clearing keeps what is under way', () => {
  const state = reduce([upload(1, 'running'), upload(2, 'done'), upload(3, 'failed'), upload(4, 'waiting')], { kind: 'clear' })

  expect(state.map((u) => u.id)).toEqual([1, 4])
})
