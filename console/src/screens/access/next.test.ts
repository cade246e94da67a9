import { expect, test } from 'vitest'
import { screenAfter } from './next'

test.each([
  [undefined, '/'],
  ['', '/'],
  ['/projects/1/keys?tab=s3', '/projects/1/keys?tab=s3'],
  ['/console/projects/1', '/projects/1'],
  ['/console', '/'],
  ['/consoles', '/consoles'],
  ['https://evil.example', '/'],
  ['//evil.example', '/'],
  ['/console//evil.example', '/'],
  ['/\\evil.example', '/'],
  ['/\tevil', '/'],
  ['javascript:alert(1)', '/'],
  ['/sign-in?next=/', '/'],
  ['/sign-in-help', '/sign-in-help'],
])('screenAfter(%j)', (next, want) => {
  expect(screenAfter(next)).toBe(want)
})
