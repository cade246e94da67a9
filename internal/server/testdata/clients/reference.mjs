// Chromium opens the API reference. It lists each operation of the document once, by chapter, sends a request and shows
// the guides, and it asks no other host.
import assert from 'node:assert/strict'
import { chromium } from 'playwright-core'

const { SOCLE_URL: server, SOCLE_CHROMIUM: executablePath } = process.env
const patience = 120_000 // milliseconds: only ends a hang
const document = await (await fetch(`${server}/openapi.json`)).json()

const browser = await chromium.launch({
	executablePath,
	timeout: patience,
	args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
		'--disable-component-update', '--disable-sync'],
})
try {
	const page = await browser.newPage({ viewport: { width: 1400, height: 900 }, reducedMotion: 'reduce' })
	page.setDefaultTimeout(patience)
	const problems = []
	page.on('console', m => m.type() === 'error' && problems.push(`console: ${m.text()}`))
	page.on('pageerror', e => problems.push(`script: ${e.message}`))
	page.on('requestfailed', r => problems.push(`${r.url()}: ${r.failure().errorText}`))
	page.on('request', r => {
		const { protocol, origin } = new URL(r.url())
		if (!['data:', 'blob:'].includes(protocol) && origin !== server) problems.push(`request to ${r.url()}`)
	})

	// visit opens an address of the reference anew. Leaving a page ends its requests, which is no problem.
	async function visit(address) {
		assert.deepEqual(problems, [])
		await page.goto('about:blank')
		problems.length = 0
		await page.goto(server + address, { waitUntil: 'commit' })
	}

	// The contents name the operations of each chapter in the order of the document. The first chapter is open.
	const want = document.tags.map(tag => [tag.name, Object.values(document.paths).flatMap(methods => Object.values(methods))
		.filter(operation => operation.tags[0] === tag.name).map(operation => operation.operationId)])
	assert.equal(want.flatMap(([, operations]) => operations).length,
		Object.values(document.paths).flatMap(methods => Object.keys(methods)).length)
	await visit('/docs')
	const shown = []
	for (const [index, [name]] of want.entries()) {
		const links = page.locator(`a[href^="#reference/tag/${name.toLowerCase().replaceAll(' ', '-')}/"]`)
		if (index > 0) await page.getByRole('button', { name: `Open Group - ${name}`, exact: true }).click()
		await links.first().waitFor()
		const operations = await links.evaluateAll(all => all.map(a => a.getAttribute('href').split('/').pop()))
		shown.push([name, [...new Set(operations)]])
	}
	assert.deepEqual(shown, want)

	// An address names an operation. It has examples and samples, and sends a request.
	await visit('/docs#reference/tag/tables/createColumn')
	const operation = page.locator('[id="reference/tag/tables/createColumn"]')
	await operation.getByText('curl', { exact: true }).waitFor()
	await operation.getByText('"numeric(10,2)"').first().waitFor()
	await operation.getByText('"referenceColumn"').first().waitFor()
	await operation.getByRole('button', { name: /Shell/ }).first().click()
	await page.getByRole('option', { name: /Fetch/ }).first().click()
	await operation.getByText('fetch', { exact: true }).first().waitFor()
	await operation.getByRole('button', { name: 'Test Request' }).click()
	assert.deepEqual(problems, [])
	const client = page.getByRole('dialog')
	await client.getByPlaceholder('Token').fill('nobody')
	const [response] = await Promise.all([
		page.waitForResponse(r => r.request().method() === 'POST'),
		client.getByRole('button', { name: /^Send/ }).first().click(),
	])
	assert.equal(response.url(), `${server}/tables/books/columns`)
	assert.equal((await response.request().allHeaders()).authorization, 'Bearer nobody')
	await page.getByText('"invalid_token"').waitFor()
	assert.equal(problems.length, 1) // the browser's own message about the status
	assert.match(problems.pop(), /401/)

	// Each chapter links to its rules in a guide.
	const rules = document.tags.map(({ description }) => description.match(/\((\/docs\?api=api#[^)]+)\)/)[1])
	await visit(rules.at(-1))
	for (const [, heading] of rules.map(address => address.split('#')))
		await page.locator(`h2[id="${heading}"], h3[id="${heading}"]`).waitFor()

	// The list of documents has each guide, under the name in its address, and switches to it.
	const list = page.locator('aside button[aria-expanded]').first()
	for (const guide of ['rest', 'cli', 'operations', 'from-supabase', 'import', 'nextjs', 'protect-a-table', 'end-users', 'files', 's3', 'migrations',
		'back-up-and-restore', 'deploy']) {
		await list.click()
		await page.locator(`[role="option"][id$="-${guide}"]`).click()
		await page.locator(`h1[id^="${guide}/description/"]`).waitFor()
		assert.equal(await page.locator('h1:visible').count(), 1) // not also the title of a document of OpenAPI
	}

	assert.deepEqual(problems, [])
} finally {
	await browser.close()
}
