import assert from 'node:assert/strict'
import { client, fails, gives, secret, step } from './suite.mjs'

const db = client(secret)

await step('post', async () => {
	await gives(db.rpc('add', { a: 1, b: 2 }), 3)
	await gives(db.rpc('add', { a: 1 }), 2)
})
await step('get', async () => {
	await gives(db.rpc('add', { a: 1, b: 2 }, { get: true }), 3)
	await gives(db.rpc('total', { prices: [1.5, 2] }, { get: true }), 3.5)
})
await step('head', async () => {
	const { data, error, count, status } = await db.rpc('books_of', { author: 'Austen' }, { head: true, count: 'exact' })
	assert.deepEqual({ data, error, count, status }, { data: null, error: null, count: 2, status: 200 })
})
await step('arrays and JSON', async () => {
	await gives(db.rpc('total', { prices: [1, 2.25, null] }), 3.25)
	await gives(db.rpc('pick', { about: { town: 'Ürzig', 'a b': '"' }, member: 'town' }), 'Ürzig')
	await gives(db.rpc('pick', { about: {}, member: 'x' }), null)
})
await step('void', async () => {
	const { data, error, status } = await db.rpc('calm_all')
	assert.deepEqual({ data, error, status }, { data: null, error: null, status: 204 })
	await gives(db.from('authors').select('id').neq('mood', 'calm'), [])
})
await step('rows: filtered, ordered, limited, counted, embedded', async () => {
	await gives(db.rpc('books_of', { author: 'Austen' }).select('title').gt('price', 8), [{ title: 'Persuasion' }])
	await gives(db.rpc('books_of', { author: 'Austen' }).select('id').order('id', { ascending: false }).limit(1), [{ id: 2 }])
	await gives(db.rpc('books_of', { author: 'Brontë' }, { get: true }).select('title, authors(name)').single(), { title: 'Shirley, a "tale" (new)', authors: { name: 'Brontë' } })
	const { data, count } = await db.rpc('books_of', { author: 'Austen' }, { count: 'exact' }).select('id').range(0, 0)
	assert.deepEqual({ data, count }, { data: [{ id: 1 }], count: 2 })
})
await step('rows: csv', () => gives(db.rpc('books_of', { author: 'Austen' }).select('id,title').csv(), 'id,title\n1,Emma\n2,Persuasion'))
await step('schema', () => gives(db.schema('public').rpc('add', { a: 1 }), 2))
await step('errors', async () => {
	await fails(db.rpc('refuse'), 418, { code: 'PT418', message: 'a teapot', details: 'short and stout', hint: 'tip it over' })
	await fails(db.rpc('adds', { a: 1 }), 404, { code: 'PGRST202' })
	await fails(db.rpc('add', { c: 1 }), 404, { code: 'PGRST202' })
	await fails(db.rpc('add', { a: 'x' }), 400, { code: '22P02' })
	await fails(db.rpc('calm_all', {}, { get: true }), 405, { code: '25006' })
})
