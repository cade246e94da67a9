// Applications call edge functions by supabase-js and from a page of another origin.
import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import { createClient, FunctionsFetchError, FunctionsHttpError, FunctionsRelayError, FunctionRegion } from '@supabase/supabase-js'
import { chromium } from 'playwright-core'
import { project, publishable, secret, step } from './suite.mjs'

const options = { auth: { persistSession: false, autoRefreshToken: false } }
const { functions } = createClient(project, publishable, options)

async function gives(name, options, want) {
	const { data, error } = await functions.invoke(name, options)
	assert.equal(error, null, error && JSON.stringify([error.name, await error.context?.text?.()]))
	if (want !== undefined) assert.deepEqual(data, want)
	return data
}

const got = (method, type, body) => ({ method, type, body, region: null, forced: null })

await step('bodies of every type arrive', async () => {
	const form = new FormData()
	form.append('name', 'Émma')
	form.append('file', new File(['content'], 'a.txt'))

	await gives('echo', {}, got('POST', null, ''))
	await gives('echo', { body: { name: 'Émma' } }, got('POST', 'application/json', '{"name":"Émma"}'))
	await gives('echo', { body: 'text ✓' }, got('POST', 'text/plain', 'text ✓'))
	await gives('echo', { body: new Blob([Uint8Array.of(0, 255)]) }, got('POST', 'application/octet-stream', [0, 255]))
	await gives('echo', { body: Uint8Array.of(1, 2).buffer }, got('POST', 'application/octet-stream', [1, 2]))
	await gives('echo', { body: form }, got('POST', 'multipart/form-data', [['name', 'Émma'], ['file', 'a.txt:content']]))
	await gives('echo', { body: '<a/>', headers: { 'Content-Type': 'application/xml' } }, got('POST', 'application/xml', '<a/>'))
})

await step('methods arrive', async () => {
	await gives('echo', { method: 'GET' }, got('GET', null, ''))
	for (const method of ['PUT', 'PATCH', 'DELETE'])
		await gives('echo', { method, body: { n: 1 } }, got(method, 'application/json', '{"n":1}'))
})

await step('answers of every type are read', async () => {
	assert.equal(JSON.parse(await gives('echo?as=text', { body: 'x' })).body, 'x')
	assert.deepEqual([...new Uint8Array(await (await gives('echo?as=bytes')).arrayBuffer())], [0, 1, 254, 255])
	assert.equal(await (await gives('echo?as=pdf')).text(), '%PDF')

	const form = await gives('echo?as=form')
	assert.equal(form.get('name'), 'Émma')
	assert.equal(await form.get('file').text(), 'content')

	const events = await gives('echo?as=events')
	assert.equal(await events.text(), 'data: 1\n\ndata: 2\n\ndata: 3\n\n')
})

await step('a region is passed on', async () => {
	const { data } = await functions.invoke('echo', { region: FunctionRegion.UsEast1 })
	assert.deepEqual([data.region, data.forced], ['us-east-1', 'us-east-1'])
})

await step('errors have the class that clients expect', async () => {
	const refused = (await functions.invoke('echo?as=refused')).error
	assert.ok(refused instanceof FunctionsHttpError)
	assert.deepEqual([refused.context.status, await refused.context.json()], [418, { reason: 'no' }])
	assert.ok((await functions.invoke('echo?as=throw')).error instanceof FunctionsHttpError)

	const unknown = (await functions.invoke('unknown')).error
	assert.ok(unknown instanceof FunctionsRelayError)
	assert.deepEqual([unknown.context.status, (await unknown.context.json()).code], [404, 'NOT_FOUND'])

	const elsewhere = createClient('http://127.0.0.1:9', publishable, options)
	assert.ok((await elsewhere.functions.invoke('echo')).error instanceof FunctionsFetchError)

	const stranger = createClient(project, 'sb_publishable_none', options)
	assert.equal((await stranger.functions.invoke('echo')).error.context.status, 401)
})

await step('an abort and a timeout reach the function', async () => {
	const abort = () => {
		const controller = new AbortController()
		setTimeout(() => controller.abort(), 300)
		return { signal: controller.signal }
	}
	for (const leave of [abort, () => ({ timeout: 300 })]) {
		const before = (await gives('slow?left')).left
		do { // one that left before its request arrived is none
			assert.ok((await functions.invoke('slow', leave())).error instanceof FunctionsFetchError)
		} while ((await gives('slow?left')).left === before)
	}
})

await step('a driver from npm reads the database', async () => {
	await gives('database', { body: 'none' }, [{ title: 'Emma', length: 4 }, { title: 'Utopia', length: 6 }])
})

await step('the server calls with its key', async () => {
	const { data } = await createClient(project, secret, options).functions.invoke('echo', { body: 'x' })
	assert.equal(data.body, 'x')
})

await step('a page of another origin calls a function', async () => {
	const script = `
		const answer = await fetch(${JSON.stringify(project + '/functions/v1/echo')}, {
			method: 'POST', headers: { apikey: ${JSON.stringify(publishable)}, 'content-type': 'application/json' },
			body: JSON.stringify({ from: 'page' }),
		})
		const unknown = await fetch(${JSON.stringify(project + '/functions/v1/unknown')})
		document.title = JSON.stringify([(await answer.json()).body, unknown.status, unknown.headers.get('sb-error-code')])`
	const site = createServer((_, res) => res.setHeader('content-type', 'text/html').end(`<script type="module">${script}</script>`))
	await new Promise(listening => site.listen(0, '127.0.0.1', listening))
	const browser = await chromium.launch({ executablePath: process.env.SOCLE_CHROMIUM, args: ['--no-sandbox', '--disable-gpu'] })
	try {
		const page = await browser.newPage()
		await page.goto(`http://127.0.0.1:${site.address().port}/`)
		await page.waitForFunction(() => document.title !== '')
		assert.deepEqual(JSON.parse(await page.title()), ['{"from":"page"}', 404, 'NOT_FOUND'])
	} finally {
		await browser.close()
		site.close()
	}
})
