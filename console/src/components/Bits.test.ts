import { expect, test } from 'vitest'
import { formatBytes, timeAgo } from './Bits'

test.each([[0, '0 B'], [999, '999 B'], [1024, '1.0 kB'], [10_240, '10 kB'], [1_500_000_000, '1.4 GB']])(
  '%d bytes are %s', (n, want) => expect(formatBytes(n)).toBe(want))

test.each([[0, 'now'], [-5_000, '5 seconds ago'], [-7_200_000, '2 hours ago'], [172_800_000, 'in 2 days']])(
  '%d ms from now is %s', (offset, want) => expect(timeAgo(new Date(offset), 0)).toBe(want))
