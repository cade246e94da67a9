// The description at the root is held against the specification of OpenAPI 2.0, by someone else's reading of it.
import assert from 'node:assert/strict'
import SwaggerParser from '@apidevtools/swagger-parser'
import { project, publishable, secret, spoken, step, user } from './suite.mjs'

async function described(headers) {
	const answer = await spoken(`${project}/rest/v1/`, { headers })
	assert.equal(answer.status, 200)
	assert.equal(answer.headers.get('content-type'), 'application/openapi+json; charset=utf-8')
	return answer.json()
}

for (const [name, headers] of Object.entries({
	anon: { apikey: publishable },
	authenticated: { apikey: publishable, Authorization: `Bearer ${user}` },
	service_role: { apikey: secret },
})) {
	await step(`valid for ${name}`, async () => {
		const document = await described(headers)
		const paths = Object.keys(document.paths)
		const valid = await SwaggerParser.validate(document, { resolve: { external: false }, validate: { schema: true, spec: true } })
		assert.equal(valid.swagger, '2.0')
		assert.ok(paths.includes('/authors'), paths.join(' '))
		assert.equal(paths.includes('/rpc/add'), name === 'service_role')
		assert.equal(paths.includes('/shelves of/all'), name === 'service_role')
	})
}
await step('an invalid one is noticed', async () => {
	const document = await described({ apikey: secret })
	document.paths['/authors'].get.responses = {}
	await assert.rejects(() => SwaggerParser.validate(document))
})
