// Two users of an application store, list, move and remove files by supabase-js, under policies.
import assert from 'node:assert/strict'
import { createClient } from '@supabase/supabase-js'

const { SOCLE_PROJECT: url, SOCLE_PUBLISHABLE: publishable, SOCLE_SECRET: secret } = process.env
const options = { realtime: { transport: class {} }, auth: { persistSession: false, autoRefreshToken: false } }
const server = createClient(url, secret, options)

async function user(email) {
	const made = await server.auth.admin.createUser({ email, password: 'correct horse battery', email_confirm: true })
	assert.equal(made.error, null)
	const client = createClient(url, publishable, options)
	const { data, error } = await client.auth.signInWithPassword({ email, password: 'correct horse battery' })
	assert.equal(error, null)
	return { id: data.user.id, files: client.storage.from('avatars') }
}

const ann = await user('ann@example.com')
const bob = await user('bob@example.com')
const name = `${ann.id}/é a.txt`

const up = await ann.files.upload(name, 'one', { contentType: 'text/plain', cacheControl: '60', metadata: { a: 1 } })
assert.equal(up.error, null)
assert.equal(up.data.fullPath, 'avatars/' + name)

const again = await ann.files.upload(name, 'two')
assert.equal(again.error.statusCode, '409')
assert.equal(again.error.message, 'The resource already exists')

const form = await ann.files.upload(name, new Blob(['two'], { type: 'text/plain' }), { upsert: true })
assert.equal(form.error, null)

const denied = await bob.files.upload(name, 'three', { upsert: true })
assert.equal(denied.error.statusCode, '403')
assert.equal(denied.error.message, 'new row violates row-level security policy')

const read = await ann.files.download(name)
assert.equal(await read.data.text(), 'two')
assert.notEqual((await bob.files.download(name)).error, null)

const moved = await ann.files.move(name, `${ann.id}/deep/b.txt`)
assert.equal(moved.data.message, 'Successfully moved')
assert.equal((await bob.files.move(`${ann.id}/deep/b.txt`, `${bob.id}/b.txt`)).error.statusCode, '404')

const list = await ann.files.list(ann.id)
assert.deepEqual(list.data.map((e) => [e.name, e.id]), [['deep', null]])
const deep = await ann.files.list(`${ann.id}/deep`)
assert.equal(deep.data[0].name, 'b.txt')
assert.equal(deep.data[0].metadata.size, 3)
assert.deepEqual((await bob.files.list(ann.id)).data, [])

assert.deepEqual((await bob.files.remove([`${ann.id}/deep/b.txt`])).data, [])
assert.equal((await ann.files.remove([`${ann.id}/deep/b.txt`])).data[0].name, `${ann.id}/deep/b.txt`)

assert.equal((await server.storage.from('avatars').upload('logo.txt', 'logo', { contentType: 'text/plain' })).error, null)
const open = await fetch(server.storage.from('avatars').getPublicUrl('logo.txt').data.publicUrl)
assert.equal(open.status, 400) // the bucket is private
assert.equal((await open.json()).message, 'Bucket not found')
const missing = await server.storage.from('none').download('x')
assert.notEqual(missing.error, null)
