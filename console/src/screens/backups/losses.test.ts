import { expect, test } from 'vitest'
import { lossText } from './losses'

test('losses in numbers', () => {
  expect(lossText({ text: 'new user|new users', count: 1, atLeast: false })).toBe('1 new user')
  expect(lossText({ text: 'new user|new users', count: 100, atLeast: true })).toBe('at least 100 new users')
})
