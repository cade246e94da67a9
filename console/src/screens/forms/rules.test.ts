import { expect, test } from 'vitest'
import { bodyOf, draftOf, moved, optionsOf, rulesText, type FormField } from './rules'

const field: FormField = {
  uuid: 'f', formUuid: 'g', type: 'select', label: 'Genre', isRequired: true, description: null, options: '["a","b, c"]',
  minLength: null, maxLength: null, minValue: null, maxValue: null, pattern: null, startDate: null, endDate: null,
  dateFormat: null, defaultValue: 'a', createdAt: '', updatedAt: '',
}

test('a field survives its editor', () => {
  expect(bodyOf(draftOf(field, 'genre'))).toEqual({
    type: 'select', label: 'Genre', name: 'genre', description: null, is_required: true, options: '["a","b, c"]',
    min_length: null, max_length: null, min_value: null, max_value: null, pattern: null, start_date: null,
    end_date: null, date_format: null, default_value: 'a',
  })
})

test('rules of another type are removed', () => {
  const body = bodyOf({ ...draftOf(field), type: 'number', minValue: '0', maxLength: '5' })

  expect(body.options).toBeNull()
  expect(body.max_length).toBeNull()
  expect(body.min_value).toBe(0)
})

test('options are a JSON array or a list', () => {
  expect(optionsOf('["a","b"]')).toEqual(['a', 'b'])
  expect(optionsOf('a, b')).toEqual(['a', 'b'])
  expect(optionsOf(null)).toEqual([])
})

test('rules in words', () => {
  expect(rulesText(field)).toBe('a, b, c · default a')
  expect(rulesText({ ...field, options: null, defaultValue: null, maxLength: 80 })).toBe('up to 80 characters')
})

test('moving stays within the list', () => {
  expect(moved(['a', 'b', 'c'], 'c', -1)).toEqual(['a', 'c', 'b'])
  expect(moved(['a', 'b', 'c'], 'a', -1)).toEqual(['a', 'b', 'c'])
})
