import { expect, test } from 'vitest'
import { objectBody, testNumbers } from './authBody'

test('an object is sent whole, without empty texts', () => {
  expect(objectBody('smtp', { url: 'smtp://a', from: 'x@y' }, { url: '' })).toEqual({ smtp: { from: 'x@y' } })
})

test('a secret alone leaves the object alone', () => {
  expect(objectBody('smtp', { url: 'smtp://a' }, { 'secrets.smtp': 'pw' })).toEqual({ secrets: { smtp: 'pw' } })
})

test('testNumbers', () => {
  expect(testNumbers(['+491=123456', ' 492 = 654321'])).toEqual({ 491: '123456', 492: '654321' })
  expect(() => testNumbers(['491'])).toThrow('491')
})
