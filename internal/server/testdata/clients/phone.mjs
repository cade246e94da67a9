// Users with phone numbers, by @supabase/supabase-js: sign up, codes, passwords, change of the number, phones as second factors, administration. The numbers are test numbers, so nothing is sent.
import assert from 'node:assert/strict'
import { createClient } from '@supabase/supabase-js'
import { project, publishable, secret, step } from './suite.mjs'

const client = (key = publishable) => createClient(project, key, { realtime: { transport: class {} }, auth: { autoRefreshToken: false, persistSession: false, detectSessionInUrl: false } })
const good = ({ data, error }) => { assert.equal(error, null); return data }
const password = 'correct horse battery', ann = client()

await step('sign up', async () => {
	const { user, session } = good(await ann.auth.signUp({ phone: '+491700000001', password, options: { channel: 'sms', data: { name: 'Ann' } } }))
	assert.equal(session, null)
	assert.equal(user.phone, '491700000001')
	assert.equal((await ann.auth.signInWithPassword({ phone: '+491700000001', password })).error.code, 'phone_not_confirmed')
	good(await ann.auth.resend({ type: 'sms', phone: '+491700000001' }))
	assert.equal((await ann.auth.verifyOtp({ type: 'sms', phone: '+491700000001', token: '999999' })).error.code, 'otp_expired')
	assert.equal(good(await ann.auth.verifyOtp({ type: 'sms', phone: '+491700000001', token: '111111' })).user.user_metadata.name, 'Ann')
	assert.equal(good(await ann.auth.getUserIdentities()).identities[0].provider, 'phone')
})
await step('password', async () => {
	assert.equal(good(await client().auth.signInWithPassword({ phone: '491700000001', password })).user.phone, '491700000001')
	assert.equal((await client().auth.signInWithPassword({ phone: '+491700000001', password: 'wrong' })).error.code, 'invalid_credentials')
})
await step('code', async () => {
	const ben = client()
	assert.equal((await ben.auth.signInWithOtp({ phone: '+491700000002', options: { shouldCreateUser: false } })).error.code, 'otp_disabled')
	assert.equal((await ben.auth.signInWithOtp({ phone: '0170' })).error.message, 'Invalid phone number format (E.164 required)')
	good(await ben.auth.signInWithOtp({ phone: '+491700000002' }))
	assert.equal(good(await ben.auth.verifyOtp({ type: 'sms', phone: '+491700000002', token: '222222' })).session.user.phone, '491700000002')
	assert.equal((await ben.auth.updateUser({ phone: '+491700000001' })).error.code, 'phone_exists')
})
await step('change of the number', async () => {
	const { user } = good(await ann.auth.updateUser({ phone: '+491700000003' }))
	assert.equal(user.new_phone, '491700000003')
	good(await ann.auth.resend({ type: 'phone_change', phone: '+491700000001' }))
	assert.equal(good(await ann.auth.verifyOtp({ type: 'phone_change', phone: '+491700000003', token: '333333' })).user.phone, '491700000003')
})
await step('second factor', async () => {
	const factor = good(await ann.auth.mfa.enroll({ factorType: 'phone', phone: '+491700000003', friendlyName: 'mine' }))
	assert.equal(factor.phone, '491700000003')
	const challenge = good(await ann.auth.mfa.challenge({ factorId: factor.id, channel: 'sms' }))
	assert.equal(challenge.type, 'phone')
	assert.equal((await ann.auth.mfa.verify({ factorId: factor.id, challengeId: challenge.id, code: '999999' })).error.code, 'mfa_verification_failed')
	good(await ann.auth.mfa.verify({ factorId: factor.id, challengeId: challenge.id, code: '333333' }))
	assert.equal(good(await ann.auth.mfa.getAuthenticatorAssuranceLevel()).currentLevel, 'aal2')
	assert.equal(good(await ann.auth.mfa.listFactors()).phone.length, 1)
})
await step('recovery codes', async () => {
	const call = async (who, method, path, body) => {
		const { access_token } = good(await who.auth.getSession()).session
		const res = await fetch(`${project}/auth/v1/factors/recovery_codes${path}`, { method, body: body && JSON.stringify(body), headers: { apikey: publishable, Authorization: `Bearer ${access_token}` } })
		assert.equal(res.status, 200)
		return res.json()
	}
	const { codes } = await call(ann, 'POST', '')
	const lost = client()
	good(await lost.auth.signInWithPassword({ phone: '491700000003', password }))
	assert.equal(good(await lost.auth.mfa.getAuthenticatorAssuranceLevel()).nextLevel, 'aal2')
	good(await lost.auth.setSession(await call(lost, 'POST', '/verify', { code: codes[0] })))
	assert.equal(good(await lost.auth.mfa.getAuthenticatorAssuranceLevel()).currentLevel, 'aal2')
	assert.deepEqual(await call(lost, 'GET', ''), { unused: 9 })
	good(await lost.auth.mfa.unenroll({ factorId: good(await lost.auth.mfa.listFactors()).phone[0].id }))
})
await step('administration', async () => {
	const { admin } = client(secret).auth
	const { user } = good(await admin.createUser({ phone: '+4917012345', password, phone_confirm: true }))
	assert.equal(good(await client().auth.signInWithPassword({ phone: '+4917012345', password })).user.id, user.id)
	assert.equal(good(await admin.updateUserById(user.id, { phone: '+4917012346' })).user.phone, '4917012346')
	assert.equal((await admin.createUser({ phone: '+4917012346' })).error.code, 'phone_exists')
})
process.exit()
