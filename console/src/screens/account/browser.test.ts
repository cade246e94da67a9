import { expect, test } from 'vitest'
import { browserName } from './browser'

const mozilla = 'Mozilla/5.0'

test.each([
  ['', 'unknown program'],
  ['curl/7.88.1', 'curl/7.88.1'],
  [`${mozilla} (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0`, 'Firefox 140 on Linux'],
  [`${mozilla} (Windows NT 10.0) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/139.0.0.0 Safari/537.36 Edg/139.0`,
    'Edge 139 on Windows'],
  [`${mozilla} (Linux; Android 15) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/139.0.0.0 Mobile Safari/537.36`,
    'Chrome 139 on Android'],
  [`${mozilla} (iPhone; CPU iPhone OS 18_5 like Mac OS X) AppleWebKit/605.1 (KHTML, like Gecko) Version/18.5 Mobile Safari/604.1`,
    'Safari 18 on iOS'],
])('browserName(%j)', (agent, want) => {
  expect(browserName(agent)).toBe(want)
})
