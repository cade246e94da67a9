// The users of an application, by @supabase/supabase-js: sign up, the link of a mail, rows by auth.uid(), refresh, codes, recovery, PKCE, second factors, administration.
import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import readline from 'node:readline'
import { createClient } from '@supabase/supabase-js'
import { SMTPServer } from 'smtp-server'
import { step } from './suite.mjs'

const say = (value) => process.stdout.write(JSON.stringify(value) + '\n')

// A mail server of others' making, whose port the test reads.
const mails = [], waiting = []
const server = new SMTPServer({
	disabledCommands: ['STARTTLS', 'AUTH'],
	onData(stream, session, done) {
		const parts = []
		stream.on('data', (part) => parts.push(part))
		stream.on('end', () => {
			const m = { to: session.envelope.rcptTo.map(({ address }) => address), data: Buffer.concat(parts).toString() }
			waiting.length ? waiting.shift()(m) : mails.push(m)
			done()
		})
	},
})
await new Promise((listening) => server.listen(0, '127.0.0.1', listening))
say({ port: server.server.address().port })
const mail = async (to) => {
	const m = mails.shift() ?? await new Promise((come) => waiting.push(come))
	assert.deepEqual(m.to, [to])
	const text = m.data.replace(/=\r?\n/g, '').replace(/=3D/g, '=')
	return { link: text.match(/http:\/\/\S+\/auth\/v1\/verify\?[^\s"<]+/)?.[0].replace(/&amp;/g, '&'), code: text.match(/code: (\d{6})/)?.[1] }
}

const { project, publishable, secret } = JSON.parse((await readline.createInterface({ input: process.stdin })[Symbol.asyncIterator]().next()).value)
const store = () => { const m = new Map(); return { getItem: (k) => m.get(k) ?? null, setItem: (k, v) => void m.set(k, v), removeItem: (k) => void m.delete(k) } }
const client = (auth = {}, key = publishable) => createClient(project, key, { realtime: { transport: class {} }, auth: { autoRefreshToken: false, detectSessionInUrl: false, storage: store(), ...auth } })
const good = ({ data, error }) => { assert.equal(error, null); return data }
const open = async (link) => { const res = await fetch(link, { redirect: 'manual' }); assert.equal(res.status, 303); return new URL(res.headers.get('location')) }
const password = 'correct horse battery'
const ann = client()

await step('sign up', async () => {
	const { user, session } = good(await ann.auth.signUp({ email: 'ann@example.com', password, options: { data: { name: 'Ann' } } }))
	assert.equal(session, null)
	assert.equal(user.email, 'ann@example.com')
	const { error } = await ann.auth.signInWithPassword({ email: 'ann@example.com', password })
	assert.equal(error.code, 'email_not_confirmed')
	const to = await open((await mail('ann@example.com')).link)
	const tokens = new URLSearchParams(to.hash.slice(1))
	good(await ann.auth.setSession({ access_token: tokens.get('access_token'), refresh_token: tokens.get('refresh_token') }))
	assert.equal(good(await ann.auth.getUser()).user.user_metadata.name, 'Ann')
})
await step('claims are verified locally', async () => {
	const { claims, header } = good(await ann.auth.getClaims())
	assert.equal(header.alg, 'ES256')
	assert.equal(claims.role, 'authenticated')
})
await step('rows', async () => {
	assert.deepEqual(good(await ann.from('profiles').select('name')), [{ name: 'Ann' }])
	assert.deepEqual(good(await ann.from('notes').insert({ body: 'hers' }).select('body').single()), { body: 'hers' })
	assert.deepEqual(good(await ann.from('notes').select('body')), [{ body: 'hers' }])
	assert.equal((await client().from('notes').select('body')).error.code, '42501')
})
await step('refresh', async () => {
	const before = good(await ann.auth.getSession()).session
	const after = good(await ann.auth.refreshSession()).session
	assert.notEqual(before.refresh_token, after.refresh_token)
	assert.deepEqual(good(await ann.from('notes').select('body')), [{ body: 'hers' }])
})
await step('update', async () => {
	assert.equal(good(await ann.auth.updateUser({ data: { city: 'Bonn' } })).user.user_metadata.city, 'Bonn')
	const { error } = await ann.auth.updateUser({ password: 'short' })
	assert.equal(error.name, 'AuthWeakPasswordError')
	assert.deepEqual(error.reasons, ['length'])
	assert.equal((await ann.auth.updateUser({ password })).error.code, 'same_password')
})
await step('wrong password', async () => {
	const { error } = await client().auth.signInWithPassword({ email: 'ann@example.com', password: 'wrong' })
	assert.equal(error.code, 'invalid_credentials')
	assert.equal(error.message, 'Invalid login credentials')
})
await step('one-time code', async () => {
	const ben = client()
	good(await ben.auth.signInWithOtp({ email: 'ben@example.com' }))
	const { code } = await mail('ben@example.com')
	assert.equal((await ben.auth.verifyOtp({ email: 'ben@example.com', token: '000000', type: 'email' })).error?.code ?? 'otp_expired', 'otp_expired')
	assert.equal(good(await ben.auth.verifyOtp({ email: 'ben@example.com', token: code, type: 'email' })).user.email, 'ben@example.com')
	assert.deepEqual(good(await ben.from('notes').select('body')), [])
})
await step('recovery by PKCE', async () => {
	const eve = client({ flowType: 'pkce' })
	good(await eve.auth.resetPasswordForEmail('ann@example.com', { redirectTo: 'http://localhost:3000/reset' }))
	const to = await open((await mail('ann@example.com')).link)
	assert.equal(to.pathname, '/reset')
	good(await eve.auth.exchangeCodeForSession(to.searchParams.get('code')))
	good(await eve.auth.updateUser({ password: 'another horse battery' }))
	assert.equal(good(await client().auth.signInWithPassword({ email: 'ann@example.com', password: 'another horse battery' })).user.email, 'ann@example.com')
})
await step('second factor', async () => {
	const dora = client()
	good(await dora.auth.signInWithPassword({ email: 'ann@example.com', password: 'another horse battery' }))
	const factor = good(await dora.auth.mfa.enroll({ factorType: 'totp', friendlyName: 'phone' }))
	assert.match(factor.totp.uri, /^otpauth:\/\/totp\//)
	const bits = [...factor.totp.secret].map((c) => 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'.indexOf(c).toString(2).padStart(5, '0')).join('')
	const key = Buffer.from(bits.match(/.{8}/g).map((b) => parseInt(b, 2)))
	const counter = Buffer.alloc(8)
	counter.writeBigUInt64BE(BigInt(Math.floor(Date.now() / 30_000)))
	const sum = createHmac('sha1', key).update(counter).digest()
	const code = String((sum.readUInt32BE(sum.at(-1) & 15) & 0x7fffffff) % 1e6).padStart(6, '0')
	assert.equal((await dora.auth.mfa.challengeAndVerify({ factorId: factor.id, code: code === '000000' ? '111111' : '000000' })).error.code, 'mfa_verification_failed')
	good(await dora.auth.mfa.challengeAndVerify({ factorId: factor.id, code }))
	assert.equal(good(await dora.auth.mfa.getAuthenticatorAssuranceLevel()).currentLevel, 'aal2')
	assert.equal(good(await dora.auth.mfa.listFactors()).totp.length, 1)
	good(await dora.auth.mfa.unenroll({ factorId: factor.id }))
})
await step('administration', async () => {
	const { admin } = client({}, secret).auth
	const { user } = good(await admin.createUser({ email: 'carl@example.com', password, email_confirm: true }))
	assert.equal(good(await admin.listUsers({ page: 1, perPage: 10 })).users.length, 3)
	assert.equal(good(await admin.updateUserById(user.id, { app_metadata: { plan: 'pro' } })).user.app_metadata.plan, 'pro')
	const { properties } = good(await admin.generateLink({ type: 'magiclink', email: 'carl@example.com' }))
	good(await client().auth.verifyOtp({ token_hash: properties.hashed_token, type: 'magiclink' }))
	good(await admin.inviteUserByEmail('dan@example.com'))
	assert.match((await mail('dan@example.com')).link, /type=invite/)
	good(await admin.deleteUser(user.id))
	assert.equal((await admin.getUserById(user.id)).error.code, 'user_not_found')
	assert.equal((await client().auth.admin.listUsers()).error.code, 'not_admin')
})
await step('log out', async () => {
	const me = client()
	good(await me.auth.signInWithPassword({ email: 'ann@example.com', password: 'another horse battery' }))
	const { refresh_token } = good(await me.auth.getSession()).session
	assert.equal((await me.auth.signOut()).error, null)
	assert.equal((await client().auth.refreshSession({ refresh_token })).error.code, 'refresh_token_not_found')
})
process.exit()
