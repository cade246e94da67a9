// Respondents answer a form: on its page, in a frame of another site, and by a form that another site has written. The desk is told by mail.
import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import { look, readLine, startMailServer, withBrowser } from './browser.mjs'

const mails = await startMailServer()
console.log(JSON.stringify({ port: mails.port }))
const server = await readLine()

let headers = {}
async function call(method, path, body) {
	const r = await fetch(server + path, { method, body: body instanceof FormData ? body : body && JSON.stringify(body),
		headers: body instanceof FormData ? headers : { ...headers, 'Content-Type': 'application/json' } })
	const reply = await r.json()
	assert.ok(reply.success, `${method} ${path}: ${JSON.stringify(reply)}`)
	return reply
}

const { metadata: { token } } = await call('POST', '/users', { username: 'owner', email: 'owner@example.com', password: 'correct horse battery' })
headers = { Authorization: `Bearer ${token}` }
headers['X-Project'] = (await call('POST', '/projects', { name: 'Shop' })).content.uuid

const container = (await call('POST', '/containers', { name: 'answers' })).content.uuid
const logo = new FormData()
const pixel = Buffer.from('iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNgYPj/HwADAgH/p1KUWAAAAABJRU5ErkJggg==', 'base64')
logo.append('file', new Blob([pixel], { type: 'image/png' }), 'logo.png')
const logoUUID = (await call('POST', `/containers/${container}/files`, logo)).content.uuid

const form = (await call('POST', '/forms', { name: 'Book a table', description: 'We confirm by mail.' })).content.uuid
await call('POST', `/forms/${form}/fields`, { fields: [
	{ label: 'Name', name: 'name', type: 'text', is_required: true, description: 'As it should stand on the table.' },
	{ label: 'E-mail address', name: 'email', type: 'email', is_required: true },
	{ label: 'Reference', name: 'reference', type: 'text', pattern: 'R[0-9]+', description: 'R and digits, from our letter.' },
	{ label: 'Day', name: 'day', type: 'date', date_format: 'DD.MM.YYYY', is_required: true },
	{ label: 'Guests', name: 'guests', type: 'rating', min_value: 1, max_value: 6 },
	{ label: 'Room', name: 'room', type: 'select', options: 'Garden,Hall' },
	{ label: 'Meals', name: 'meals', type: 'multiselect', options: 'Lunch,Dinner' },
	{ label: 'Wishes', name: 'wishes', type: 'textarea' },
	{ label: 'Floor plan', name: 'plan', type: 'file' },
	{ label: 'I have read the terms', name: 'terms', type: 'checkbox', is_required: true },
] })
const path = (await call('POST', `/forms/${form}/link`)).content.pagePath
const update = settings => call('PUT', `/forms/${form}`, settings)
await update({ state: 'open', container_uuid: container, honeypot: 'website', color: '#7a1f5c', logo_uuid: logoUUID,
	notify_emails: ['desk@example.com'], success_message: 'See you soon.' })
const total = async () => (await call('GET', `/forms/${form}`)).content.totalResponses

// Another site, which may show the form in a frame, and a third one, which may not.
const site = port => createServer((request, response) => {
	const pages = {
		'/frame': `<iframe src="${server}${path}" width="400" height="700"></iframe>`,
		'/form': `<form method="post" action="${server}${path}">
			<input name="name"><input name="email"><input name="day"><input type="hidden" name="terms" value="on">
			<input type="hidden" name="_subject" value="x"><input name="website" hidden><button>Send</button></form>`,
		'/thanks': 'Thanks from the site',
	}
	response.setHeader('Content-Type', 'text/html')
	response.end(`<!doctype html><title>Site</title><link rel="icon" href="data:,">${pages[request.url] ?? ''}`)
})
const sites = [site(), site()]
for (const s of sites) await new Promise(listening => s.listen(0, '127.0.0.1', listening))
const [friend, stranger] = sites.map(s => `http://127.0.0.1:${s.address().port}`)
await update({ embed_origins: [friend] })

await withBrowser(server, async open => {
	const page = await open()

	// The desk wants the mails.
	const { text: question } = await mails.mail('desk@example.com')
	await page.goto(question.match(/http:\S+\/confirm-recipient\?token=\S+/)[0])
	await look(page, 'confirm-recipient')
	await page.getByRole('button', { name: 'Confirm' }).click()
	await page.getByText('Your address is confirmed').waitFor()
	assert.deepEqual((await call('GET', `/forms/${form}`)).content.unconfirmedEmails, [])

	await page.goto(server + path)
	assert.equal(await page.title(), 'Book a table')
	await look(page, 'form')
	assert.equal(await page.locator('img.logo').evaluate(e => e.naturalWidth), 1)
	assert.equal(await page.getByRole('button', { name: 'Send' }).evaluate(e => getComputedStyle(e).backgroundColor), 'rgb(122, 31, 92)')
	assert.equal(await page.locator('[name=website]').evaluate(e => e.getBoundingClientRect().right < 0), true, 'the honeypot is visible')

	// The browser itself asks for what is required.
	await page.getByRole('button', { name: 'Send' }).click()
	assert.equal(page.url(), server + path)
	assert.equal(await total(), 0)

	// With the keyboard alone: the honeypot takes no focus.
	await page.getByLabel('Name', { exact: true }).focus()
	await page.keyboard.type('Ada')
	await page.keyboard.press('Tab')
	await page.keyboard.type('ada@example.com')
	await page.keyboard.press('Tab')
	await page.keyboard.type('wrong')
	await page.getByLabel('Day').fill('2026-12-24')
	await page.getByLabel('4').check()
	await page.getByLabel('Room').selectOption('Garden')
	await page.getByLabel('Lunch').check()
	await page.getByLabel('Dinner').check()
	await page.getByLabel('Wishes').fill('A window.\nNo draught.')
	await page.getByLabel('Floor plan').setInputFiles({ name: 'plan.png', mimeType: 'image/png', buffer: pixel })
	await page.getByLabel('I have read the terms').focus()
	await page.keyboard.press('Space')
	await page.keyboard.press('Tab')
	assert.equal(await page.evaluate(() => document.activeElement.tagName), 'BUTTON')
	await page.keyboard.press('Enter')
	await page.getByRole('alert').waitFor()

	// The mistake stands next to its input, and everything else is still there.
	await look(page, 'form-mistake')
	assert.equal(await page.evaluate(() => document.activeElement.labels[0].innerText), 'Reference (optional)')
	assert.equal(await page.getByLabel('Reference').evaluate(e => document.getElementById(e.getAttribute('aria-describedby').split(' ')[1]).innerText), 'Must have the expected format.')
	assert.equal(await page.getByLabel('Day').inputValue(), '2026-12-24')
	assert.equal(await page.getByLabel('Wishes').inputValue(), 'A window.\nNo draught.')
	assert.deepEqual([await page.getByLabel('4').isChecked(), await page.getByLabel('Dinner').isChecked(), await page.getByLabel('Room').inputValue()],
		[true, true, 'Garden'])
	assert.equal(await total(), 0)

	await page.getByLabel('Reference').fill('R17')
	await page.getByLabel('Floor plan').setInputFiles({ name: 'plan.png', mimeType: 'image/png', buffer: pixel })
	await page.getByRole('button', { name: 'Send' }).click()
	await page.getByText('See you soon.').waitFor()
	await look(page, 'form-done')
	await page.reload()
	assert.equal(await total(), 1)
	const [response] = (await call('GET', `/forms/${form}/responses`)).content
	assert.deepEqual(response.answers.map(a => a.type === 'file' ? a.value.size : a.value),
		['Ada', 'ada@example.com', 'R17', '2026-12-24', '4', 'Garden', ['Lunch', 'Dinner'], 'A window.\nNo draught.', pixel.length, true].map(v => v === '4' ? response.answers[4].value : v))

	const { text } = await mails.mail('desk@example.com')
	assert.match(text, /Subject: New response to Book a table/)
	assert.match(text, /Wishes: A window\.\r\n    No draught\./)

	// In a frame of the site that the form names.
	const framed = await open({ origins: [friend] })
	await framed.goto(`${friend}/frame`)
	const frame = framed.frameLocator('iframe')
	await frame.getByLabel('Name', { exact: true }).fill('Grace')
	await frame.getByLabel('E-mail address').fill('grace@example.com')
	await frame.getByLabel('Day').fill('2026-12-25')
	await frame.getByLabel('I have read the terms').check()
	if (process.env.SOCLE_SCREENSHOTS) await framed.screenshot({ path: `${process.env.SOCLE_SCREENSHOTS}/form-framed.png` })
	await frame.getByRole('button', { name: 'Send' }).click()
	await frame.getByText('See you soon.').waitFor()
	assert.equal(await total(), 2)

	// A form that the site has written, which leads back to the site.
	await update({ redirect_url: `${friend}/thanks` })
	await framed.goto(`${friend}/form`)
	await framed.locator('[name=name]').fill('Hedy')
	await framed.locator('[name=email]').fill('nobody')
	await framed.locator('[name=day]').fill('26.12.2026')
	await framed.getByRole('button', { name: 'Send' }).click()
	await framed.getByRole('alert').waitFor()
	assert.equal(framed.url(), server + path)
	assert.equal(await framed.getByLabel('E-mail address').getAttribute('aria-invalid'), 'true')
	await framed.getByLabel('E-mail address').fill('hedy@example.com')
	await framed.getByLabel('Day').fill('2026-12-26')
	await framed.getByRole('button', { name: 'Send' }).click()
	await framed.getByText('Thanks from the site').waitFor()
	assert.equal(framed.url(), `${friend}/thanks`)
	assert.equal(await total(), 3)

	await update({ state: 'closed' })
	await page.goto(server + path)
	assert.match(await page.locator('main').innerText(), /The form is not open\./)
	await look(page, 'form-closed')
	await update({ state: 'open' })

	// No other site may show the page.
	const foreign = await open({ blocked: true })
	await foreign.goto(`${stranger}/frame`)
	await foreign.waitForLoadState()
	assert.match(foreign.frames()[1].url(), /^chrome-error:/)
})

await mails.close()
for (const s of sites) s.close()
process.exit()
