// End users of an application upload objects in parts by tus-js-client, under policies.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { Upload } from 'tus-js-client'
import { createClient } from '@supabase/supabase-js'

const { SOCLE_PROJECT: url, SOCLE_PUBLISHABLE: publishable, SOCLE_SECRET: secret } = process.env
const endpoint = `${url}/storage/v1/upload/resumable`
const options = { realtime: { transport: class {} }, auth: { persistSession: false, autoRefreshToken: false } }
const server = createClient(url, secret, options)

async function user(email) {
	await server.auth.admin.createUser({ email, password: 'correct horse battery', email_confirm: true })
	const client = createClient(url, publishable, options)
	const { data } = await client.auth.signInWithPassword({ email, password: 'correct horse battery' })
	return { id: data.user.id, files: client.storage.from('avatars'), headers: { authorization: `Bearer ${data.session.access_token}`, apikey: publishable } }
}

const [ann, bob] = [await user('ann@example.com'), await user('bob@example.com')]
const bytes = randomBytes((13 << 20) + 17)

function upload(who, objectName, options = {}) {
	return new Promise((resolve, reject) => {
		const u = new Upload(options.bytes ?? bytes, {
			endpoint, chunkSize: 6 << 20, retryDelays: null, uploadDataDuringCreation: true, removeFingerprintOnSuccess: true,
			metadata: { bucketName: 'avatars', objectName, contentType: 'image/png', cacheControl: '60', metadata: '{"a":"b"}' },
			onError: reject, onSuccess: () => resolve(u), ...options, headers: { ...who.headers, ...options.headers },
			onChunkComplete: (size, accepted) => options.onChunkComplete?.(u, accepted, resolve),
		})
		u.start()
	})
}
const refused = (status, promise) => assert.rejects(promise, e => e.originalResponse.getStatus() === status || assert.fail(e.message))
const read = async (who, name) => Buffer.from(await (await who.files.download(name)).data.arrayBuffer())

// Stopped in the middle, it goes on where it was.
const name = `${ann.id}/é big`
const stopped = await upload(ann, name, { onChunkComplete: (u, accepted, resolve) => accepted >= 6 << 20 && u.abort().then(() => resolve(u)) })
assert.notEqual((await ann.files.download(name)).error, null)
const head = { method: 'HEAD', headers: { ...ann.headers, 'tus-resumable': '1.0.0' } }
const state = await fetch(stopped.url, head)
assert.equal(state.headers.get('upload-length'), String(bytes.length))
assert.ok(Number(state.headers.get('upload-offset')) >= 6 << 20 && state.headers.get('upload-expires'))

// Only the user who has begun it goes on.
assert.equal((await fetch(stopped.url, { ...head, headers: { ...head.headers, ...bob.headers } })).status, 404)
const patch = (offset, body, more) => fetch(stopped.url, { method: 'PATCH', body, headers: { ...head.headers, 'upload-offset': String(offset), 'content-type': 'application/offset+octet-stream', ...more } })
assert.equal((await patch(1, 'x')).status, 409)
assert.equal((await patch(state.headers.get('upload-offset'), 'x', { 'tus-resumable': '0.2.2' })).status, 412)

await upload(ann, name, { uploadUrl: stopped.url })
assert.ok(bytes.equals(await read(ann, name)))
assert.equal((await fetch(stopped.url, head)).headers.get('upload-offset'), String(bytes.length))
const [listed] = (await ann.files.list(ann.id)).data
assert.equal(listed.metadata.mimetype, 'image/png')
assert.equal(listed.metadata.cacheControl, 'max-age=60')

// Policies, names, buckets and limits decide when it begins.
await refused(403, upload(bob, `${ann.id}/b`))
await refused(409, upload(ann, name))
await refused(404, upload(ann, name, { metadata: { bucketName: 'none', objectName: 'x' } }))
await refused(400, upload(ann, `${ann.id}/../x`))
await refused(403, upload({ headers: {} }, name))
await refused(400, upload(ann, name, { endpoint: endpoint + '/sign', headers: { 'x-signature': 'a.b' } }))

// It replaces an object with x-upsert, and can be empty, or given up.
await upload(ann, name, { bytes: Buffer.from('new'), headers: { 'x-upsert': 'true' } })
assert.equal(String(await read(ann, name)), 'new')
await upload(ann, `${ann.id}/empty`, { bytes: Buffer.alloc(0) })
assert.equal((await read(ann, `${ann.id}/empty`)).length, 0)
const given = await upload(ann, `${ann.id}/given up`, { onChunkComplete: (u, accepted, resolve) => u.abort(true).then(() => resolve(u)) })
assert.equal((await fetch(given.url, head)).status, 404)

// Two parts at one offset: one is stored.
const made = await fetch(endpoint, { method: 'POST', headers: { ...head.headers, 'upload-length': '6', 'upload-metadata': `bucketName ${btoa('avatars')},objectName ${btoa(ann.id + '/twice')}` } })
assert.equal(made.status, 201)
stopped.url = new URL(made.headers.get('location'), endpoint).href
const both = await Promise.all([patch(0, 'one'), patch(0, 'two')])
assert.deepEqual(both.map(r => r.status).sort(), [204, 409])
assert.equal((await patch(3, 'end')).status, 204)
assert.match(String(await read(ann, `${ann.id}/twice`)), /^(one|two)end$/)

// Browsers learn what they may send and read.
const preflight = await fetch(endpoint, { method: 'OPTIONS', headers: { origin: 'https://app.example.com' } })
assert.equal(preflight.status, 204)
assert.match(preflight.headers.get('tus-extension'), /creation-with-upload/)
assert.match(preflight.headers.get('access-control-allow-headers'), /x-signature/)
assert.match(preflight.headers.get('access-control-expose-headers'), /upload-offset/)
