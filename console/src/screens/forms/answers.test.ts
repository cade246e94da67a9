import { expect, test } from 'vitest'
import { answerText, filledDays } from './answers'

test('answers as people read them', () => {
  expect(answerText(true)).toBe('yes')
  expect(answerText(['a', 'b'])).toBe('a; b')
  expect(answerText(4.5)).toBe('4.5')
  expect(answerText(null)).toBe('')
  expect(answerText('/containers/1/files/my%20cv.pdf', 'file')).toBe('my cv.pdf')
})

test('days without responses have a zero', () => {
  expect(filledDays([{ day: '2026-03-03', count: 2 }, { day: '2026-03-01', count: 1 }])).toEqual([
    { day: '2026-03-01', count: 1 }, { day: '2026-03-02', count: 0 }, { day: '2026-03-03', count: 2 },
  ])
  expect(filledDays([])).toEqual([])
})
