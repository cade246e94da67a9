// Browsers and a server talk over channels by supabase-js, with both serializers.
import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { createClient } from '@supabase/supabase-js'
import { project, publishable, secret, step } from './suite.mjs'

const clients = []

// userToken returns a token of user ann that expires soon.
function userToken(seconds) {
	const part = (value) => Buffer.from(JSON.stringify(value)).toString('base64url')
	const signed = part({ alg: 'HS256', typ: 'JWT' }) + '.' +
		part({ role: 'authenticated', sub: 'ann', exp: Math.floor(Date.now() / 1000) + seconds })
	return signed + '.' + createHmac('sha256', process.env.SOCLE_JWT_SECRET).update(signed).digest('base64url')
}

// The project at each server: clients connect to them in turn.
const servers = [project, process.env.SOCLE_PROJECT_ELSEWHERE ?? project]

// connect returns a client with a key and a serializer.
function connect(key, vsn) {
	const client = createClient(servers[clients.length % servers.length], key, {
		auth: { persistSession: false, autoRefreshToken: false },
		realtime: { vsn },
	})
	clients.push(client)
	return client
}

// until waits for a call of on's argument, with a value that matches.
function until(name, on, matches = () => true) {
	return new Promise((resolve, reject) => {
		const late = setTimeout(() => reject(new Error(`no ${name} within 20 s`)), 20_000)
		on((...values) => {
			if (!matches(...values)) return
			clearTimeout(late)
			resolve(values[0])
		})
	})
}

// subscribe joins a channel and returns the state and the error.
const subscribe = (channel) =>
	new Promise((resolve) => channel.subscribe((status, error) => resolve({ status, error: error?.message })))

async function join(channel) {
	assert.deepEqual(await subscribe(channel), { status: 'SUBSCRIBED', error: undefined })
	return channel
}

const hears = (channel, event) => until(`broadcast ${event}`, (f) => channel.on('broadcast', { event }, f))

for (const [mine, theirs] of [['2.0.0', '2.0.0'], ['1.0.0', '1.0.0'], ['2.0.0', '1.0.0'], ['1.0.0', '2.0.0']]) {
	await step(`broadcast from ${mine} to ${theirs}`, async () => {
		const ann = connect(publishable, mine).channel(`room ${mine} ${theirs}`, { config: { broadcast: { ack: true, self: true } } })
		const ben = connect(publishable, theirs).channel(`room ${mine} ${theirs}`)
		const own = hears(ann, 'cursor'), other = hears(ben, 'cursor'), back = hears(ann, 'back'), sent = hears(ben, 'sent')
		ben.on('broadcast', { event: 'back' }, () => assert.fail('hears itself'))
		await join(ann)
		await join(ben)

		assert.equal(await ann.send({ type: 'broadcast', event: 'cursor', payload: { x: 1, text: 'é ✓ "' } }), 'ok')
		for (const message of [await own, await other]) {
			assert.deepEqual(message, { type: 'broadcast', event: 'cursor', payload: { x: 1, text: 'é ✓ "' } })
		}

		assert.equal(await ben.send({ type: 'broadcast', event: 'back', payload: { y: 2 } }), 'ok')
		assert.deepEqual((await back).payload, { y: 2 })

		const server = connect(secret, mine).channel(`room ${mine} ${theirs}`)
		assert.deepEqual(await server.httpSend('sent', { z: 3 }), { success: true })
		assert.deepEqual((await sent).payload, { z: 3 })
	})
}

await step('bytes', async () => {
	const ann = connect(publishable, '2.0.0').channel('bytes'), ben = connect(publishable, '2.0.0').channel('bytes')
	const got = hears(ben, 'blob')
	await join(ann)
	await join(ben)
	await ann.send({ type: 'broadcast', event: 'blob', payload: new Uint8Array([0, 255, 1]).buffer })
	assert.deepEqual(new Uint8Array((await got).payload), new Uint8Array([0, 255, 1]))
})

await step('presence', async () => {
	const ann = connect(publishable, '2.0.0').channel('office', { config: { presence: { key: 'ann' } } })
	const ben = connect(publishable, '1.0.0').channel('office', { config: { presence: { key: 'ben' } } })
	const on = (channel, event, matches) => until(`presence ${event}`, (f) => channel.on('presence', { event }, f), matches)
	const both = on(ann, 'sync', () => Object.keys(ann.presenceState()).sort().join() === 'ann,ben')
	const changed = on(ann, 'join', ({ key, newPresences }) => key === 'ben' && newPresences[0].mood === 'busy')
	const left = on(ann, 'leave', ({ key, leftPresences }) => key === 'ben' && leftPresences[0].mood === 'busy')
	const known = on(ben, 'sync', () => 'ann' in ben.presenceState())
	await join(ann)
	assert.equal(await ann.track({ mood: 'idle' }), 'ok')
	await join(ben)
	await known
	assert.equal(ben.presenceState().ann[0].mood, 'idle')

	assert.equal(await ben.track({ mood: 'idle' }), 'ok')
	await both
	assert.equal(await ben.track({ mood: 'busy' }), 'ok')
	await changed
	assert.equal(ann.presenceState().ben.length, 1)
	assert.equal(await ben.untrack(), 'ok')
	await left
	assert.deepEqual(Object.keys(ann.presenceState()), ['ann'])
})

await step('private channels', async () => {
	const config = { config: { private: true } }
	const { status, error } = await subscribe(connect(publishable, '2.0.0').channel('vault', config))
	assert.equal(status, 'CHANNEL_ERROR')
	assert.match(error, /Unauthorized: You do not have permissions to read from this Channel topic: vault/)
	await join(connect(secret, '2.0.0').channel('vault', config))

	const refusal = await connect(publishable, '2.0.0').channel('vault', config).httpSend('x', {}).catch((e) => e)
	assert.match(String(refusal.message ?? refusal.error), /permissions to write to this Channel topic: vault/)
})

await step('tokens', async () => {
	const client = connect(publishable, '2.0.0')
	const short = userToken(3)
	await client.realtime.setAuth(short)
	const channel = client.channel('short')
	const told = until('system message', (f) => channel.on('system', {}, f), ({ message }) => /Token has expired/.test(message))
	const closed = until('end', (f) => channel.subscribe(f), (status) => status === 'CLOSED')
	await told
	await closed
	await client.realtime.setAuth(short)
	const { error } = await subscribe(client.channel('later'))
	assert.match(error, /InvalidJWTToken: Token has expired/)
})

await step('policies of private channels', async () => {
	const config = { config: { private: true } }
	const ann = connect(publishable, '2.0.0'), ben = connect(secret, '1.0.0').channel('vault:ann', config)
	await ann.realtime.setAuth(userToken(60))
	const channel = ann.channel('vault:ann', config)
	const got = hears(channel, 'secret')
	await join(ben)
	await join(channel)
	await ben.send({ type: 'broadcast', event: 'secret', payload: { n: 1 } })
	assert.deepEqual((await got).payload, { n: 1 })

	const other = await subscribe(ann.channel('vault:ben', config))
	assert.match(other.error, /permissions to read from this Channel topic: vault:ben/)
})

await step('messages by SQL', async () => {
	const start = Date.now() - 60_000, server = connect(secret, '2.0.0')
	const tell = (event) => server.rpc('tell', { topic: 'vault:ann', event }).throwOnError()
	const payload = { text: 'é ✓' }
	for (const vsn of ['1.0.0', '2.0.0']) {
		const ann = connect(publishable, vsn)
		await ann.realtime.setAuth(userToken(60))
		const channel = ann.channel('vault:ann', { config: { private: true } })
		const got = hears(channel, vsn), row = hears(channel, 'INSERT')
		await join(channel)
		await tell(vsn)
		const message = await got
		assert.deepEqual(message, { type: 'broadcast', event: vsn, payload: { ...payload, id: message.meta.id }, meta: { id: message.meta.id } })

		await server.from('notes').insert({ id: vsn, body: 'a' }).throwOnError()
		const { payload: change } = await row
		assert.deepEqual(change, { id: change.id, schema: 'public', table: 'notes', operation: 'INSERT',
			record: { id: vsn, body: 'a' }, old_record: null })
		await ann.removeChannel(channel)

		const later = ann.channel('vault:ann', { config: { private: true, broadcast: { replay: { since: start, limit: 2 } } } })
		const replayed = [], both = until('replay', (f) => later.on('broadcast', { event: '*' }, f), (m) => replayed.push(m) === 2)
		await join(later)
		await both
		assert.deepEqual(replayed.map((m) => [m.event, m.meta.replayed]), [[vsn, true], ['INSERT', true]])
		await ann.removeChannel(later)
	}
})

await step('changes of rows', async () => {
	const server = connect(secret, '2.0.0'), ann = connect(publishable, '2.0.0'), anyone = connect(publishable, '1.0.0')
	await ann.realtime.setAuth(userToken(60))
	const seen = [], deleted = []
	const follow = async (client, name, changes) => {
		const channel = client.channel(name)
		for (const [filter, f] of changes) channel.on('postgres_changes', { schema: 'public', table: 'todos', ...filter }, f)
		const ready = until('system message', (f) => channel.on('system', {}, f), ({ extension }) => extension === 'postgres_changes')
		await join(channel)
		assert.equal((await ready).status, 'ok')
		return channel
	}

	const all = await follow(ann, 'all', [[{ event: '*' }, (p) => seen.push(p)]])
	const big = until('change of a big todo', (f) => { follow(ann, 'big', [[{ event: 'INSERT', filter: 'size=gt.10' }, f]]).then(() => go()) })
	let go
	const followed = new Promise((resolve) => { go = resolve })
	await followed
	await follow(anyone, 'anyone', [[{ event: 'INSERT' }, () => assert.fail('sees a hidden row')], [{ event: 'DELETE' }, (p) => deleted.push(p)]])

	const insert = (row) => server.from('todos').insert(row).throwOnError()
	await insert({ id: 1, owner: 'ben', title: 'hidden', size: 99 })
	await insert({ id: 2, owner: 'ann', title: 'small', size: 1 })
	await insert({ id: 3, owner: 'ann', title: 'big', size: 9007199254740991, tags: ['a', 'b'] })
	assert.equal((await big).new.title, 'big')
	await server.from('todos').update({ title: 'tiny' }).eq('id', 2).throwOnError()
	await server.from('todos').delete().eq('id', 3).throwOnError()
	for (let i = 0; i < 100 && (seen.length < 4 || deleted.length < 1); i++) await new Promise((f) => setTimeout(f, 50))

	assert.deepEqual(seen.map((p) => [p.eventType, p.new, p.old]), [
		['INSERT', { id: 2, owner: 'ann', title: 'small', size: 1, tags: null }, {}],
		['INSERT', { id: 3, owner: 'ann', title: 'big', size: 9007199254740991, tags: ['a', 'b'] }, {}],
		['UPDATE', { id: 2, owner: 'ann', title: 'tiny', size: 1, tags: null }, { id: 2 }],
		['DELETE', {}, { id: 3 }],
	])
	assert.equal(seen[0].schema + '.' + seen[0].table, 'public.todos')
	assert.ok(Math.abs(Date.now() - Date.parse(seen[0].commit_timestamp)) < 600_000)
	assert.deepEqual(deleted.map((p) => p.old), [{ id: 3 }])
	await ann.removeChannel(all)
})

await step('changes of no table', async () => {
	const channel = connect(publishable, '2.0.0').channel('changes')
	channel.on('postgres_changes', { event: '*', schema: 'public', table: 'none_such' }, () => {})
	const told = until('system message', (f) => channel.on('system', {}, f), ({ extension }) => extension === 'postgres_changes')
	await join(channel)
	assert.equal((await told).status, 'error')
})

await step('leaving', async () => {
	const client = connect(publishable, '2.0.0')
	const channel = await join(client.channel('leaving'))
	assert.equal(await client.removeChannel(channel), 'ok')
})

await Promise.all(clients.map((client) => client.removeAllChannels()))
process.exit()
