// Chromium opens the API reference, which shows each operation of the document once and asks no other host.
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { chromium } from 'playwright-core'

const { SOCLE_URL: server, SOCLE_CHROMIUM: executablePath } = process.env
const patience = 120_000 // milliseconds: only ends a hang
const document = JSON.parse(await readFile('../../../../docs/openapi.json', 'utf8'))
const operations = Object.values(document.paths).flatMap(methods => Object.values(methods)).map(o => o.operationId).sort()

const browser = await chromium.launch({
	executablePath,
	timeout: patience,
	args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
		'--disable-component-update', '--disable-sync'],
})
try {
	const page = await browser.newPage()
	page.setDefaultTimeout(patience)
	const problems = []
	page.on('console', m => m.type() === 'error' && problems.push(`console: ${m.text()}`))
	page.on('pageerror', e => problems.push(`script: ${e.message}`))
	page.on('requestfailed', r => problems.push(`${r.url()}: ${r.failure().errorText}`))
	page.on('response', r => r.status() >= 400 && problems.push(`${r.url()}: status ${r.status()}`))
	page.on('request', r => {
		const { protocol, origin } = new URL(r.url())
		if (protocol !== 'data:' && origin !== server) problems.push(`request to ${r.url()}`)
	})

	// The address names an operation, which the page opens.
	await page.goto(`${server}/docs#getProjectOpenAPI`)
	await page.waitForFunction(() => !document.getElementById('introduction').textContent.startsWith('Reading'))
	const shown = await page.locator('details.operation:visible').evaluateAll(all => all.map(e => e.id))
	assert.deepEqual([shown.length, await page.locator('#found').textContent()], [operations.length, `${operations.length} operations`],
		await page.locator('#introduction').textContent())
	assert.deepEqual(shown.sort(), operations)
	assert.deepEqual(await page.locator('details[open]').evaluateAll(all => all.map(e => e.id)), ['getProjectOpenAPI'])

	// The filter leaves those that have all words.
	await page.locator('#filter').fill('getProjectOpenAPI')
	assert.deepEqual(await page.locator('details.operation:visible').evaluateAll(all => all.map(e => e.id)), ['getProjectOpenAPI'])
	assert.equal(await page.locator('#found').textContent(), '1 operation')

	assert.deepEqual(problems, [])
} finally {
	await browser.close()
}
