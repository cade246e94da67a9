// URLs of objects, as supabase-js makes them of the server's answers and as the server prints them, for hostile names.
import assert from 'node:assert/strict'
import { createClient } from '@supabase/supabase-js'

const { SOCLE_PROJECT: url, SOCLE_SECRET: secret, SOCLE_NAMES: names } = process.env
const options = { realtime: { transport: class {} }, auth: { persistSession: false, autoRefreshToken: false } }
const server = createClient(url, secret, options)
const storage = `${url}/storage/v1`
assert.equal((await server.storage.createBucket('open', { public: true })).error, null)
const files = server.storage.from('open')

async function opens(address, want, step) {
	const res = await fetch(address)
	assert.equal(`${res.status} ${await res.text()}`, `200 ${want}`, `${step}: ${address}`)
}

for (const name of JSON.parse(names)) {
	// The library puts the name into a path as it is, so the caller escapes it.
	const path = name.split('/').map(encodeURIComponent).join('/')
	const ticket = await files.createSignedUploadUrl(path)
	assert.equal(ticket.error, null, name)
	const put = await fetch(ticket.data.signedUrl, { method: 'PUT', body: path, headers: { 'content-type': 'text/plain' } })
	assert.equal(put.status, 200, `signed upload of ${name}: ${ticket.data.signedUrl}`)

	const signed = await files.createSignedUrl(path, 60, { download: 'x.txt' })
	assert.equal(signed.error, null, name)
	await opens(signed.data.signedUrl, path, 'signed URL')

	const several = await files.createSignedUrls([name], 60)
	await opens(several.data[0].signedUrl, path, 'signed URLs')

	const plain = await fetch(`${storage}/object/sign/open/${path}`, { method: 'POST', body: '{"expiresIn": 60}',
		headers: { apikey: secret, 'content-type': 'application/json' } })
	await opens(storage + (await plain.json()).signedURL, path, 'signed URL as printed')

	if (!/[?#]/.test(name)) { // the library leaves these two as they are
		await opens(files.getPublicUrl(name).data.publicUrl, path, 'public URL')
	}
	assert.equal(await (await files.download(path)).data.text(), path)
}

const { data } = await files.list('', { limit: 1000 })
assert.ok(data.some((entry) => entry.name === 'a?b.txt'))
