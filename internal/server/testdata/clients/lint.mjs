// The OpenAPI document satisfies the OpenAPI schema and redocly's recommended rules, without a warning.
import assert from 'node:assert/strict'
import { createConfig, lint } from '@redocly/openapi-core'

const problems = await lint({ ref: process.env.SOCLE_DOCUMENT, config: await createConfig({ extends: ['recommended'] }) })
// An upgraded connection has no 2xx: its success is 101.
const upgrade = p => p.ruleId === 'operation-2xx-response' && p.location[0]?.pointer.includes('~1database~1connect/')
assert.deepEqual(problems.filter(p => !upgrade(p)).map(p => `${p.severity} ${p.ruleId}: ${p.message} ${p.location[0]?.pointer}`), [])
