// The OpenAPI document satisfies the OpenAPI schema and redocly's recommended rules, without a warning.
import assert from 'node:assert/strict'
import { createConfig, lint } from '@redocly/openapi-core'

const problems = await lint({ ref: process.env.SOCLE_DOCUMENT, config: await createConfig({ extends: ['recommended'] }) })
assert.deepEqual(problems.map(p => `${p.severity} ${p.ruleId}: ${p.message} ${p.location[0]?.pointer}`), [])
