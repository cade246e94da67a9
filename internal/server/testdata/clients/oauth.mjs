// Users of an application sign in with an identity provider of others' making, in Chromium. The script prints the provider's address and the
// application's, waits for a line, and prints a line to get a sign-in whose time is over.
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { writeSync } from 'node:fs'
import { createServer } from 'node:http'
import { createInterface } from 'node:readline'
import { withBrowser } from './browser.mjs'

console.info = console.warn = console.error // the provider's advice
const { default: Provider } = await import('oidc-provider')
const { SOCLE_PROJECT: project, SOCLE_PUBLISHABLE: key } = process.env

const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]()
async function ask(question) {
	writeSync(1, JSON.stringify(question) + '\n')
	return JSON.parse((await lines.next()).value)
}

async function serve(handler) {
	const server = createServer((request, response) => handler(request, response))
	await new Promise(listening => server.listen(0, '127.0.0.1', listening))
	return { server, origin: `http://127.0.0.1:${server.address().port}` }
}

let provide
const { server: providerServer, origin: issuer } = await serve((request, response) => provide(request, response))
provide = new Provider(issuer, {
	clients: [{ client_id: 'socle-test', client_secret: 'secret of the client', redirect_uris: [`${project}/auth/v1/callback`] }],
	claims: { email: ['email', 'email_verified'], profile: ['name'] },
	findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id, email: `${id}@example.com`, email_verified: true, name: id }) }),
	cookies: { keys: ['a key'] },
	pkce: { required: () => true },
}).callback()

const library = await readFile('node_modules/@supabase/supabase-js/dist/umd/supabase.js')
const { server: siteServer, origin: site } = await serve((request, response) => {
	if (request.url === '/supabase.js') return response.setHeader('Content-Type', 'text/javascript').end(library)
	response.setHeader('Content-Type', 'text/html').end(`<!doctype html><title>Notes</title><link rel="icon" href="data:,">
		<script src="/supabase.js"></script><script>
		const flowType = new URLSearchParams(location.search).get('flow') ?? 'implicit'
		window.client = supabase.createClient(${JSON.stringify(project)}, ${JSON.stringify(key)}, { auth: { flowType, storageKey: 'notes' } })
		</script>`)
})

const callback = `${project}/auth/v1/callback`
const isApp = url => url.origin === site

// arrived waits for the application and returns the session, or the error, that the address has brought.
async function arrived(page) {
	await page.waitForURL(isApp)
	return page.evaluate(async () => {
		const { error } = await client.auth.initialize()
		const { data } = await client.auth.getSession()
		return { session: data.session, error: error && { message: error.message, ...error.details }, address: location.href }
	})
}

// begin leaves the application for the provider, which shows its page or sends a person whom it knows back at once.
async function begin(page, method, options = {}) {
	await Promise.all([page.waitForEvent('framenavigated'), page.evaluate(([method, options]) =>
		client.auth[method]({ provider: 'custom:test', options }), [method, options]).catch(() => {})]) // the page goes away
}

// agree signs in at the provider.
async function agree(page, login) {
	await page.getByPlaceholder('Enter any login').fill(login)
	await page.getByPlaceholder('and password').fill('any')
	await page.getByRole('button', { name: 'Sign-in' }).click()
	await page.getByRole('button', { name: 'Continue' }).click()
}

const refused = 'OAuth state belongs to another browser or was used'

await ask({ issuer, site })
await withBrowser(new URL(project).origin, async open => {
	const visit = async (path = '/') => {
		const page = await open({ scripts: true, origins: [issuer, site, 'https://fonts.googleapis.com'] })
		await page.route('https://fonts.googleapis.com/**', route => route.fulfill({ contentType: 'text/css', body: '' }))
		if (path) await page.goto(site + path)
		return page
	}
	const fails = async (page, address, message, error = 'invalid_request', code = 'bad_oauth_state') => {
		if (address) await page.goto(address)
		assert.deepEqual((await arrived(page)).error, { message, error, code })
	}

	// Sign in with the tokens in the fragment.
	const ada = await visit()
	let returned
	ada.on('request', request => request.url().startsWith(callback) && (returned = request.url()))
	await begin(ada, 'signInWithOAuth', { scopes: 'offline_access', queryParams: { ui_locales: 'en' } })
	assert.equal(new URL(ada.url()).origin, issuer)
	await agree(ada, 'ada')
	const first = await arrived(ada)
	assert.equal(first.error, null)
	assert.equal(first.session.user.email, 'ada@example.com')
	assert.equal(first.session.user.user_metadata.full_name, 'ada')
	assert.ok(first.session.provider_token)
	assert.ok(!first.address.includes('token'), first.address)

	// The browser comes back once more, with a state of nobody, and after too long.
	await fails(ada, returned, refused)
	await fails(ada, `${callback}?code=x&state=wrong`, 'OAuth callback with invalid state')
	const late = await ask({ late: true })
	await ada.context().addCookies([{ name: late.name, value: late.value, url: project }])
	await fails(ada, late.url, 'OAuth state has expired')

	// Sign in with a code. The provider knows the person.
	await ada.evaluate(() => client.auth.signOut())
	await ada.goto(`${site}/?flow=pkce`)
	await begin(ada, 'signInWithOAuth', { redirectTo: `${site}/?flow=pkce` })
	const second = await arrived(ada)
	assert.equal(second.error, null)
	assert.equal(second.session.user.id, first.session.user.id)
	assert.ok(second.session.provider_token)
	assert.equal(second.address, `${site}/?flow=pkce`)

	// A person who does not agree.
	const bob = await visit()
	await begin(bob, 'signInWithOAuth')
	await bob.getByText('[ Cancel ]').click()
	await fails(bob, null, 'End-User aborted interaction', 'access_denied', 'access_denied')

	// A browser without the cookie, and one that has got the address of the return.
	const carol = await visit()
	let sent
	carol.on('request', request => request.url().startsWith(callback) && (sent = request.url()))
	await begin(carol, 'signInWithOAuth')
	await carol.context().clearCookies({ name: /^socle-oauth-/ })
	await agree(carol, 'carol')
	await fails(carol, null, refused)
	const dave = await visit(null)
	await fails(dave, sent, refused)
	assert.equal((await arrived(dave)).session, null)

	// An identity for a user with a password, and without it again.
	const eve = await visit()
	const { error } = await eve.evaluate(() => client.auth.signUp({ email: 'eve@example.com', password: 'correct horse battery' }))
	assert.equal(error, null)
	await begin(eve, 'linkIdentity')
	await agree(eve, 'lee')
	const linked = await arrived(eve)
	assert.equal(linked.error, null)
	assert.equal(linked.session.user.email, 'eve@example.com')
	const identities = () => eve.evaluate(async () => (await client.auth.getUserIdentities()).data.identities.map(i => i.provider).sort())
	assert.deepEqual(await identities(), ['custom:test', 'email'])
	const unlink = provider => eve.evaluate(async provider => {
		const { data } = await client.auth.getUserIdentities()
		return (await client.auth.unlinkIdentity(data.identities.find(i => i.provider === provider))).error?.code
	}, provider)
	assert.equal(await unlink('custom:test'), undefined)
	assert.deepEqual(await identities(), ['email'])
	assert.equal(await unlink('email'), 'single_identity_not_deletable')

	// The identity is free for a user of its own.
	await eve.evaluate(() => client.auth.signOut())
	await begin(eve, 'signInWithOAuth')
	assert.equal((await arrived(eve)).session.user.email, 'lee@example.com')
})
siteServer.close()
providerServer.close()
process.stdin.destroy()
