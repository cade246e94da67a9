import { expect, test } from 'vitest'
import { actionText, actorText, dayStart, targetText } from './entry'

test('an operation in words', () => {
  expect(actionText('createEndUser')).toBe('create end user')
  expect(actionText('runSQL')).toBe('run SQL')
  expect(actionText('createSignedURL')).toBe('create signed URL')
  expect(actionText('deleteJWTKey')).toBe('delete JWT key')
})

test('actors have names', () => {
  expect(actorText({ actor: 'x', actorName: 'ada', actorEmail: 'a@b.c' })).toBe('ada')
  expect(actorText({ actorName: null, actorEmail: null })).toBe('the server')
  expect(actorText({ actor: '0123456789', actorName: null, actorEmail: null })).toBe('deleted user 01234567')
})

test('a day has a start and an end', () => {
  const start = dayStart('2026-02-28')!
  const end = dayStart('2026-02-28', true)!

  expect(Date.parse(end) - Date.parse(start)).toBe(86_400_000)
  expect(dayStart('')).toBeUndefined()
})

test('targets have names', () => {
  const form = '01a21c4c-5504-782d-a5ef-25b5c91bf6e0'

  expect(targetText(`/forms/${form}/fields`, 'p', new Map([[form, 'Survey']]))).toBe('/forms/Survey/fields')
  expect(targetText(`/forms/${form}`, 'p', new Map())).toBe(`/forms/${form}`)
  expect(targetText('/projects/p/end-users', 'p', new Map())).toBe('/end-users')
})
