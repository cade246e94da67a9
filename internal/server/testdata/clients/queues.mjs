// A browser and a server use a queue by supabase-js, as Supabase's guide does.
import assert from 'node:assert/strict'
import { createClient } from '@supabase/supabase-js'
import { project, publishable, secret, spoken, step, user } from './suite.mjs'

function queues(key, token) {
	const headers = token ? { Authorization: `Bearer ${token}` } : {}
	return createClient(project, key, { auth: { persistSession: false }, global: { fetch: spoken, headers } }).schema('pgmq_public')
}

async function data(request) {
	const { data, error } = await request
	assert.equal(error, null)
	return data
}

const server = queues(secret)
await step('send, read, archive, delete', async () => {
	assert.deepEqual(await data(server.rpc('send', { queue_name: 'tasks', message: { n: 1 }, sleep_seconds: 0 })), [1])
	assert.deepEqual(await data(server.rpc('send_batch', { queue_name: 'tasks', messages: [{ n: 2 }, { n: 3 }, { n: 4 }] })), [2, 3, 4])
	const read = await data(server.rpc('read', { queue_name: 'tasks', sleep_seconds: 60, n: 2 }))
	assert.deepEqual(read.map(({ msg_id, read_ct, message, headers }) => ({ msg_id, read_ct, message, headers })),
		[{ msg_id: 1, read_ct: 1, message: { n: 1 }, headers: null }, { msg_id: 2, read_ct: 1, message: { n: 2 }, headers: null }])
	assert.ok(new Date(read[0].vt) > new Date(read[0].enqueued_at))
	assert.equal(await data(server.rpc('archive', { queue_name: 'tasks', message_id: 1 })), true)
	assert.equal(await data(server.rpc('delete', { queue_name: 'tasks', message_id: 2 })), true)
	assert.equal(await data(server.rpc('delete', { queue_name: 'tasks', message_id: 2 })), false)
	assert.deepEqual((await data(server.rpc('pop', { queue_name: 'tasks' }))).map((m) => m.message), [{ n: 3 }])
})
await step('privileges decide', async () => {
	for (const [name, args] of [['send', { queue_name: 'tasks', message: {} }], ['read', { queue_name: 'tasks', sleep_seconds: 1, n: 1 }], ['pop', { queue_name: 'tasks' }]]) {
		const { error, status } = await queues(publishable).rpc(name, args)
		assert.deepEqual([status, error?.code], [401, '42501'], name)
	}
	const ann = queues(publishable, user)
	assert.deepEqual(await data(ann.rpc('send', { queue_name: 'inbox', message: { to: 'ann' } })), [1])
	const { error, status } = await ann.rpc('send', { queue_name: 'inbox', message: { to: 'bob' } })
	assert.deepEqual([status, error?.code], [403, '42501'])
	assert.deepEqual((await data(ann.rpc('pop', { queue_name: 'inbox' }))).map((m) => m.message), [{ to: 'ann' }])
})
