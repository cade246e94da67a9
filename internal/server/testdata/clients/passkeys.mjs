// Passkeys, and authenticators as second factors, by @supabase/supabase-js in Chromium with its virtual authenticator.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { withBrowser } from './browser.mjs'

const { SOCLE_URL, SOCLE_PROJECT, SOCLE_TOKEN, SOCLE_PUBLISHABLE, SOCLE_SECRET } = process.env
const library = readFileSync('node_modules/@supabase/supabase-js/dist/umd/supabase.js')
const site = createServer((request, response) => {
	response.setHeader('Content-Type', request.url === '/' ? 'text/html' : 'text/javascript')
	response.end(request.url === '/' ? '<!doctype html><html lang="en"><title>Passkeys</title><link rel="icon" href="data:,"><script src="/supabase.js"></script>' : library)
})
await new Promise(listening => site.listen(0, 'localhost', listening))
const origin = `http://localhost:${site.address().port}`

const settings = await fetch(`${SOCLE_URL}/projects/${SOCLE_PROJECT}/auth-settings`, {
	method: 'PUT', headers: { Authorization: `Bearer ${SOCLE_TOKEN}`, 'Content-Type': 'application/json' },
	body: JSON.stringify({ site_url: origin, confirm_email: false, webauthn: { passkeys: true, factors: true, rp_name: 'Notes' } }),
})
assert.equal(settings.status, 200, await settings.text())

const project = `${SOCLE_URL}/projects/${SOCLE_PROJECT}`
await withBrowser(SOCLE_URL, async open => {
	const page = await open({ scripts: true, origins: [origin] })
	await page.goto(origin)
	await page.evaluate(([project, key]) => {
		window.client = supabase.createClient(project, key, { auth: { autoRefreshToken: false, experimental: { passkey: true }, storageKey: 'passkeys' } })
	}, [project, SOCLE_PUBLISHABLE])

	const cdp = await page.context().newCDPSession(page)
	await cdp.send('WebAuthn.enable')
	const add = options => cdp.send('WebAuthn.addVirtualAuthenticator', { options: { protocol: 'ctap2', automaticPresenceSimulation: true, ...options } })
	const phone = await add({ transport: 'internal', hasResidentKey: true, hasUserVerification: true, isUserVerified: true })

	// auth calls a method of the client and returns what of its result can leave the page.
	const auth = (path, ...args) => page.evaluate(async ([path, args]) => {
		const names = path.split('.'), method = names.pop()
		const { data, error } = await names.reduce((o, name) => o[name], client.auth)[method](...args)
		return { data: JSON.parse(JSON.stringify(data ?? null)), error: error && { code: error.code, name: error.name, message: error.message } }
	}, [path, args])
	const good = async (...call) => { const { data, error } = await auth(...call); assert.equal(error, null, JSON.stringify(error)); return data }

	const password = 'correct horse battery'
	let user
	for (let tries = 0; !user; tries++) { // the settings take effect within seconds
		const { data } = await auth('signUp', { email: `ann${tries}@example.com`, password })
		if (data?.session) user = data.user
	}
	const passkey = await good('registerPasskey')
	assert.match(passkey.id, /^[0-9a-f-]{36}$/)
	assert.equal((await auth('registerPasskey')).error.name, 'InvalidStateError') // excludeCredentials
	assert.equal((await good('passkey.update', { passkeyId: passkey.id, friendlyName: 'my phone' })).friendly_name, 'my phone')

	await auth('signOut')
	for (const _ of [1, 2]) { // the counter goes on
		assert.equal((await good('signInWithPasskey')).user.id, user.id)
	}
	const [listed] = await good('passkey.list')
	assert.equal(listed.friendly_name, 'my phone')
	assert.ok(listed.last_used_at)

	// Without the user's finger.
	await cdp.send('WebAuthn.setUserVerified', { authenticatorId: phone.authenticatorId, isUserVerified: false })
	assert.notEqual((await auth('signInWithPasskey')).error, null)
	await cdp.send('WebAuthn.setUserVerified', { authenticatorId: phone.authenticatorId, isUserVerified: true })

	// A security key as the second factor.
	await cdp.send('WebAuthn.removeVirtualAuthenticator', phone)
	await add({ transport: 'usb', hasResidentKey: false, hasUserVerification: false })
	await good('mfa.webauthn.register', { friendlyName: 'key' })
	assert.equal((await good('mfa.getAuthenticatorAssuranceLevel')).currentLevel, 'aal2')
	await auth('signOut')
	await good('signInWithPassword', { email: user.email, password })
	assert.deepEqual((({ currentLevel, nextLevel }) => [currentLevel, nextLevel])(await good('mfa.getAuthenticatorAssuranceLevel')), ['aal1', 'aal2'])
	const { webauthn: [factor] } = await good('mfa.listFactors')
	await good('mfa.webauthn.authenticate', { factorId: factor.id })
	assert.equal((await good('mfa.getAuthenticatorAssuranceLevel')).currentLevel, 'aal2')
	assert.equal((await auth('passkey.delete', { passkeyId: passkey.id })).error, null)
	assert.deepEqual(await good('passkey.list'), [])

	// Administration, which belongs to no page.
	const { createClient } = await import('@supabase/supabase-js')
	const { admin } = createClient(project, SOCLE_SECRET, { realtime: { transport: class {} }, auth: { persistSession: false, experimental: { passkey: true } } }).auth
	assert.deepEqual((await admin.passkey.listPasskeys({ userId: user.id })).data, [])
})
site.close()
