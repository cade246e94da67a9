// A server and a user use queues by supabase-js, as Supabase's schema pgmq_public has them.
import assert from 'node:assert/strict'
import { createClient } from '@supabase/supabase-js'
import { project, publishable, secret, step } from './suite.mjs'

const options = { auth: { persistSession: false, autoRefreshToken: false } }
const queues = (key, token) =>
	createClient(project, key, token ? { ...options, accessToken: async () => token } : options).schema('pgmq_public')
const server = queues(secret)
const user = queues(publishable, process.env.SOCLE_USER)

// call calls a function of the schema, which must succeed.
async function call(client, name, args) {
	const { data, error } = await client.rpc(name, args)
	assert.equal(error, null, JSON.stringify(error))
	return data
}

await step('a server sends, reads, archives and deletes messages', async () => {
	assert.deepEqual(await call(server, 'send', { queue_name: 'tasks', message: { n: 1 }, sleep_seconds: 0 }), [1])
	assert.deepEqual(
		await call(server, 'send_batch', { queue_name: 'tasks', messages: [{ n: 2 }, { n: 'é ✓' }], sleep_seconds: 0 }), [2, 3])
	assert.deepEqual(await call(server, 'send', { queue_name: 'tasks', message: { n: 4 }, sleep_seconds: 3600 }), [4])

	const read = await call(server, 'read', { queue_name: 'tasks', sleep_seconds: 3600, n: 2 })
	assert.deepEqual(read.map(({ msg_id, read_ct, message }) => [msg_id, read_ct, message]), [[1, 1, { n: 1 }], [2, 1, { n: 2 }]])
	assert.equal(await call(server, 'archive', { queue_name: 'tasks', message_id: 1 }), true)
	assert.equal(await call(server, 'delete', { queue_name: 'tasks', message_id: 2 }), true)
	assert.equal(await call(server, 'delete', { queue_name: 'tasks', message_id: 2 }), false)

	const popped = await call(server, 'pop', { queue_name: 'tasks' })
	assert.deepEqual(popped.map(({ msg_id, message }) => [msg_id, message]), [[3, { n: 'é ✓' }]])
	assert.deepEqual(await call(server, 'read', { queue_name: 'tasks', sleep_seconds: 0, n: 5 }), []) // the last one sleeps
})

await step('a user reads the messages that a policy shows', async () => {
	for (const to of ['ann', 'bob'])
		await call(server, 'send', { queue_name: 'inbox', message: { to }, sleep_seconds: 0 })
	const read = await call(user, 'read', { queue_name: 'inbox', sleep_seconds: 0, n: 5 })
	assert.deepEqual(read.map(({ message }) => message.to), ['ann'])
})

await step('a queue without a grant is closed', async () => {
	for (const client of [user, queues(publishable)]) {
		const { data, error } = await client.rpc('read', { queue_name: 'tasks', sleep_seconds: 0, n: 1 })
		assert.equal(data, null)
		assert.equal(error.code, '42501')
	}
})
