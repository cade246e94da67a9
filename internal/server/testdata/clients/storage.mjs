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

const signed = await ann.files.createSignedUrl(`${ann.id}/deep/b.txt`, 60, { download: 'b.txt' })
assert.equal(signed.error, null)
const fetched = await fetch(signed.data.signedUrl)
assert.equal(await fetched.text(), 'two')
assert.equal(fetched.headers.get('content-disposition'), 'attachment; filename="b.txt"')
const several = await bob.files.createSignedUrls([`${ann.id}/deep/b.txt`], 60)
assert.equal(several.data[0].signedUrl, null)

// A hidden object is like one that does not exist.
const absent = `${ann.id}/deep/none.txt`
for (const call of [(f, n) => f.createSignedUrl(n, 60), (f, n) => f.info(n), (f, n) => f.exists(n),
	(f, n) => f.copy(n, `${bob.id}/c.txt`), (f, n) => f.move(n, `${bob.id}/c.txt`), (f, n) => f.upload(n, 'x')]) {
	const [one, other] = [await call(bob.files, `${ann.id}/deep/b.txt`), await call(bob.files, absent)]
	const plain = (r) => JSON.stringify([r.data, r.error?.message, r.error?.statusCode, r.error?.status])
	assert.equal(plain(one), plain(other))
	assert.notEqual(one.error ?? one.data, null)
}

const ticket = await bob.files.createSignedUploadUrl(`${bob.id}/later.txt`)
assert.equal(ticket.error, null)
const anonymous = createClient(url, publishable, options).storage.from('avatars')
assert.equal((await anonymous.uploadToSignedUrl(`${bob.id}/later.txt`, ticket.data.token, 'later')).error, null)
assert.equal(await (await bob.files.download(`${bob.id}/later.txt`)).data.text(), 'later')
assert.equal((await ann.files.createSignedUploadUrl(`${bob.id}/x.txt`)).error.statusCode, '403')

const copied = await bob.files.copy(`${bob.id}/later.txt`, `${bob.id}/copy.txt`)
assert.equal(copied.data.path, `avatars/${bob.id}/copy.txt`)
const info = await bob.files.info(`${bob.id}/copy.txt`)
assert.equal(info.data.size, 5)
const page = await bob.files.listV2({ prefix: `${bob.id}/`, limit: 1 })
assert.equal(page.data.objects[0].name, `${bob.id}/copy.txt`)
const next = await bob.files.listV2({ prefix: `${bob.id}/`, limit: 1, cursor: page.data.nextCursor })
assert.deepEqual([next.data.objects[0].name, next.data.hasNext], [`${bob.id}/later.txt`, false])
const newest = await bob.files.list(bob.id, { sortBy: { column: 'created_at', order: 'desc' }, search: 'C' })
assert.deepEqual(newest.data.map((e) => e.name), ['copy.txt'])

assert.deepEqual((await anonymous.list()).data, [])
assert.equal((await createClient(url, publishable, options).storage.createBucket('mine')).error.statusCode, '403')
assert.deepEqual((await createClient(url, publishable, options).storage.listBuckets()).data, [])

assert.deepEqual((await bob.files.remove([`${ann.id}/deep/b.txt`])).data, [])
assert.equal((await ann.files.remove([`${ann.id}/deep/b.txt`])).data[0].name, `${ann.id}/deep/b.txt`)

assert.equal((await server.storage.from('avatars').upload('logo.txt', 'logo', { contentType: 'text/plain' })).error, null)
const open = await fetch(server.storage.from('avatars').getPublicUrl('logo.txt').data.publicUrl)
assert.equal(open.status, 400) // the bucket is private
assert.equal((await open.json()).message, 'Bucket not found')
const missing = await server.storage.from('none').download('x')
assert.notEqual(missing.error, null)

const made = await server.storage.createBucket('limits', { public: true, fileSizeLimit: '1kb', allowedMimeTypes: ['image/*'] })
assert.equal(made.error, null)
const limits = server.storage.from('limits')
assert.equal((await limits.upload('a.txt', 'x', { contentType: 'text/plain' })).error.message, 'mime type text/plain is not supported')
assert.equal((await limits.upload('a.png', 'x'.repeat(2000), { contentType: 'image/png' })).error.statusCode, '413')
assert.equal((await server.storage.updateBucket('limits', { public: false })).data.message, 'Successfully updated')
assert.deepEqual((await server.storage.getBucket('limits')).data.allowed_mime_types, ['image/*'])
assert.equal((await server.storage.listBuckets({ search: 'IMI' })).data[0].file_size_limit, 1000)
assert.equal((await server.storage.deleteBucket('limits')).data.message, 'Successfully deleted')
