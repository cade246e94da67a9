// Users of the example application sign up, keep notes and change their picture, in Chromium.
import assert from 'node:assert/strict'
import { createReadStream } from 'node:fs'
import { createServer } from 'node:http'
import { extname } from 'node:path'
import { look, withBrowser } from './browser.mjs'

const { SOCLE_URL, SOCLE_PROJECT, SOCLE_TOKEN } = process.env
const types = { '.html': 'text/html', '.js': 'text/javascript', '.css': 'text/css' }
const site = createServer((request, response) => {
	const path = new URL(request.url, 'http://unused').pathname.replace(/\/$/, '/index.html')
	const file = createReadStream(process.env.EXAMPLE + path)
	file.on('open', () => response.setHeader('Content-Type', types[extname(path)]))
	file.on('error', () => { response.statusCode = 404; response.end() })
	file.pipe(response)
})
await new Promise(listening => site.listen(0, '127.0.0.1', listening))
const origin = `http://127.0.0.1:${site.address().port}`

async function codeOf(address) {
	for (;;) {
		const mails = await fetch(`${SOCLE_URL}/projects/${SOCLE_PROJECT}/mails`, { headers: { Authorization: `Bearer ${SOCLE_TOKEN}` } })
		const code = (await mails.json()).content.find(m => m.recipient === address)?.text.match(/code: (\d+)/)?.[1]
		if (code) return code
		await new Promise(resolve => setTimeout(resolve, 100))
	}
}

const picture = { name: 'me.png', mimeType: 'image/png', buffer: Buffer.from(
	'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNgYPj/HwADAgH/p1KUWAAAAABJRU5ErkJggg==', 'base64') }

// signUp returns the page of a new user.
async function signUp(page, address) {
	await page.goto(origin)
	await page.getByLabel('E-mail address').fill(address)
	await page.getByLabel('Password').fill('correct horse battery')
	await page.getByRole('button', { name: 'Sign up' }).click()
	await page.getByLabel('Code of the mail').fill(await codeOf(address))
	await page.getByRole('button', { name: 'Confirm' }).click()
	await page.getByText(address).waitFor()
}

async function addNote(page, body) {
	await page.getByLabel('New note').fill(body)
	await page.getByRole('button', { name: 'Add' }).click()
	await page.getByText(body).waitFor()
}

await withBrowser(SOCLE_URL, async open => {
	const options = { scripts: true, origins: [origin] }
	const ada = await open(options)
	await ada.goto(origin)
	await look(ada, 'example-enter')
	await signUp(ada, 'ada@example.com')
	await addNote(ada, 'Call Charles')
	await addNote(ada, '<b>Engines</b>')

	const avatar = ada.getByAltText('Your picture')
	assert.equal(await avatar.isVisible(), false)
	for (const _ of [1, 2]) { // the second replaces the first
		const shown = ada.waitForResponse(r => r.url().includes('/object/public/avatars/') && r.ok())
		await ada.getByLabel('Change picture').setInputFiles(picture)
		await shown
		await avatar.waitFor()
	}
	await look(ada, 'example-notes')

	const bob = await open(options)
	await signUp(bob, 'bob@example.com')
	await addNote(bob, 'Mine')
	assert.deepEqual(await bob.locator('li').allTextContents(), ['Mine Delete'])

	await ada.reload() // the session is kept
	await ada.getByRole('listitem').filter({ hasText: 'Call Charles' }).getByRole('button').click()
	await ada.getByText('Call Charles').waitFor({ state: 'detached' })
	await avatar.waitFor()

	await ada.getByRole('button', { name: 'Sign out' }).click()
	await ada.getByLabel('E-mail address').fill('ada@example.com')
	await ada.getByLabel('Password').fill('wrong horse battery')
	await ada.getByRole('button', { name: 'Sign in' }).click()
	await ada.getByText('Invalid login credentials').waitFor()
	await ada.getByLabel('Password').fill('correct horse battery')
	await ada.getByRole('button', { name: 'Sign in' }).click()
	await ada.getByText('<b>Engines</b>').waitFor()
})
site.close()
