// People follow the links of their mails: one accepts an invitation as a new user, one with an account, one sets a new password,
// one confirms an address.
import assert from 'node:assert/strict'
import { look, readLine, startMailServer, withBrowser } from './browser.mjs'

const mails = await startMailServer()
console.log(JSON.stringify({ port: mails.port }))
const server = await readLine()
const password = 'correct horse battery'

async function call(method, path, body, token) {
	const r = await fetch(server + path, { method, body: body && JSON.stringify(body),
		headers: { 'Content-Type': 'application/json', ...(token && { Authorization: `Bearer ${token}` }) } })
	const reply = await r.json()
	assert.ok(reply.success, `${method} ${path}: ${JSON.stringify(reply)}`)
	return reply
}

const signUp = async name => {
	const reply = await call('POST', '/users', { username: name, email: `${name}@example.com`, password })
	return { ...reply.content, token: reply.metadata.token }
}

// followMail opens the link of the next mail to an address.
async function followMail(page, to, path) {
	const { text } = await mails.mail(to)
	const url = text.match(new RegExp(`^${server}${path}\\?token=\\S+`, 'm'))?.[0]
	assert.ok(url, text)
	await page.goto(url)
	return url
}

const text = page => page.locator('main').innerText()

const owner = await signUp('owner')
const invite = email => call('POST', `/organizations/${owner.organizationUuid}/invitations`, { email, role_id: 4 }, owner.token)
const members = async () => (await call('GET', `/organizations/${owner.organizationUuid}/members`, undefined, owner.token)).content.length

await withBrowser(server, async open => {
	const page = await open()

	await page.goto(server)
	assert.equal(await page.title(), 'Socle')
	await look(page, 'start')
	assert.deepEqual(await page.getByRole('link').allInnerTexts(), ['Open the console', 'API reference', 'Command line', 'OpenAPI document', 'Health'])

	// A new user: the link opens a page, the keyboard alone fills it in, a mistake is shown where it is.
	await invite('ada@example.com')
	const invitation = await followMail(page, 'ada@example.com', '/accept-invitation')
	await look(page, 'invitation-new')
	await page.getByLabel('User name').focus()
	await page.keyboard.type('ada')
	await page.keyboard.press('Tab')
	await page.keyboard.type('short')
	await Promise.all([page.waitForEvent('load'), page.keyboard.press('Enter')])
	await look(page, 'invitation-mistake')
	assert.match(await text(page), /Must have at least 8 characters\./)
	assert.match(await page.title(), /^Error: /)
	assert.equal(await page.evaluate(() => document.activeElement.name), 'password')
	assert.equal(await page.getByLabel('User name').inputValue(), 'ada')
	assert.equal(await page.getByLabel('Password').getAttribute('aria-invalid'), 'true')
	assert.equal(await members(), 1)
	await page.getByLabel('Password').fill(password)
	await page.getByRole('button').click()
	assert.match(await text(page), /You are now a member of owner/)
	await look(page, 'invitation-accepted')
	assert.equal(await members(), 2)

	await page.goto(invitation)
	assert.match(await text(page), /no longer valid/)
	await look(page, 'invitation-used')

	// A user with an account.
	const grace = await signUp('grace')
	await invite('grace@example.com')
	await followMail(page, 'grace@example.com', '/accept-invitation')
	await look(page, 'invitation-login')
	await page.getByLabel('Password').fill('not her password')
	await page.getByRole('button', { name: 'Log in and join' }).click()
	assert.match(await text(page), /The e-mail address or the password is wrong\./)
	await page.getByLabel('Password').fill(password)
	await page.getByRole('button').click()
	assert.match(await text(page), /You are now a member of owner/)
	assert.equal(await members(), 3)

	// A forgotten password, from the page that asks for the address on.
	await page.goto(`${server}/forgot-password`)
	await look(page, 'forgotten')
	await page.getByLabel('E-mail address').fill('grace@example.com')
	await page.getByRole('button').click()
	assert.match(await text(page), /Check your mail/)
	const reset = await followMail(page, 'grace@example.com', '/reset-password')
	await look(page, 'reset')
	await page.getByLabel('New password').fill('a wholly new password')
	await page.getByRole('button').click()
	assert.match(await text(page), /Your password is set/)
	await call('POST', '/users/login', { email: 'grace@example.com', password: 'a wholly new password' })
	await page.goto(reset)
	assert.match(await text(page), /no longer valid/)
	await page.getByRole('link', { name: 'Request another link' }).click()
	assert.match(await page.title(), /Forgot/)

	// A new address.
	const { metadata: { token } } = await call('POST', '/users/login', { email: 'grace@example.com', password: 'a wholly new password' })
	await call('POST', '/users/me/email', { email: 'hopper@example.com', password: 'a wholly new password' }, token)
	await followMail(page, 'hopper@example.com', '/confirm-email')
	await look(page, 'confirm')
	assert.equal((await call('GET', '/users/me', undefined, token)).content.email, grace.email)
	await page.getByRole('button', { name: 'Confirm' }).click()
	assert.match(await text(page), /hopper@example\.com is now the address/)
	assert.equal((await call('GET', '/users/me', undefined, token)).content.email, 'hopper@example.com')
})

await mails.close()
process.exit()
