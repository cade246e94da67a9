import assert from 'node:assert/strict'
import { client, fails, gives, secret, step } from './suite.mjs'

const db = client(secret)

await step('insert: one, nothing returned', async () => {
	const { data, error, status } = await db.from('genres').insert({ id: 10, name: 'travel' })
	assert.deepEqual({ data, error, status }, { data: null, error: null, status: 201 })
	await gives(db.from('genres').select().eq('id', 10), [{ id: 10, name: 'travel' }])
})
await step('insert: many, returned', () =>
	gives(db.from('genres').insert([{ id: 11, name: 'crime' }, { name: 'ghosts', id: 12 }]).select('name'), [{ name: 'crime' }, { name: 'ghosts' }]))
await step('insert: single, embedded', () =>
	gives(db.from('books').insert({ id: 10, title: 'Sanditon', author_id: 1 }).select('title, authors(name)').single(), { title: 'Sanditon', authors: { name: 'Austen' } }))
await step('insert: enum, array, JSON, range', async () => {
	const row = { id: 10, name: 'Dickens', mood: 'merry', tags: ['a,b', '"c"', '{d}'], about: { pets: [{ raven: null }] }, active: true, mentor_id: null }
	await gives(db.from('authors').insert(row).select().single(), row)
})
await step('insert: what means something in URLs, lists and patterns', async () => {
	const row = { id: 20, name: `a&b=c?d#e+f%20{},.:*"(\\)';` }
	await gives(db.from('genres').insert(row).select().single(), row)
	const stored = () => db.from('genres').select()
	await gives(stored().eq('name', row.name), [row])
	await gives(stored().match(row), [row])
	await gives(stored().eq('id', 20).neq('name', row.name), [])
	await gives(stored().like('name', 'a&b=c?d#e+f\\%20{}%'), [row])
	await gives(db.from('genres').delete().eq('name', row.name).select(), [row])
})
await step('insert: counted', async () => {
	const { count, error } = await db.from('genres').insert([{ id: 13, name: 'a' }, { id: 14, name: 'b' }], { count: 'exact' })
	assert.deepEqual({ count, error }, { count: 2, error: null })
})
await step('insert: null for what is missing', () =>
	fails(db.from('authors').insert([{ name: 'Eliot', mood: 'grim' }, { name: 'Fielding' }]), 400, { code: '23502' }))
await step('insert: default for what is missing', () =>
	gives(db.from('authors').insert([{ name: 'Eliot', mood: 'grim' }, { name: 'Fielding' }], { defaultToNull: false }).select('name, mood, tags'),
		[{ name: 'Eliot', mood: 'grim', tags: [] }, { name: 'Fielding', mood: 'calm', tags: [] }]))
await step('insert: none', () => gives(db.from('genres').insert([]).select(), []))

await step('upsert: by the primary key', () =>
	gives(db.from('genres').upsert([{ id: 10, name: 'journeys' }, { id: 15, name: 'plays' }]).select(), [{ id: 10, name: 'journeys' }, { id: 15, name: 'plays' }]))
await step('upsert: onConflict', () =>
	gives(db.from('books').upsert({ title: 'Sanditon', author_id: 1, price: 3 }, { onConflict: 'author_id,title' }).select('id, price'), [{ id: 10, price: 3 }]))
await step('upsert: ignoreDuplicates', async () => {
	await gives(db.from('genres').upsert([{ id: 10, name: 'x' }, { id: 16, name: 'new' }], { ignoreDuplicates: true }).select(), [{ id: 16, name: 'new' }])
	await gives(db.from('genres').select('name').eq('id', 10), [{ name: 'journeys' }])
})
await step('upsert: no such constraint', () => fails(db.from('genres').upsert({ id: 1, name: 'x' }, { onConflict: 'name' }), 400, { code: '42P10' }))

await step('update', async () => {
	const { data, error, status } = await db.from('genres').update({ name: 'voyages' }).eq('id', 10)
	assert.deepEqual({ data, error, status }, { data: null, error: null, status: 204 })
	await gives(db.from('genres').update({ name: 'trips' }).eq('name', 'voyages').select(), [{ id: 10, name: 'trips' }])
})
await step('update: none', () => gives(db.from('genres').update({ name: 'x' }).eq('id', 999).select(), []))
await step('update: counted, with an embed', async () => {
	const { data, count, error } = await db.from('books').update({ price: 4 }, { count: 'exact' }).eq('id', 10).select('price, authors(name)')
	assert.deepEqual({ data, count, error }, { data: [{ price: 4, authors: { name: 'Austen' } }], count: 1, error: null })
})
await step('update: single of none changes nothing', () => fails(db.from('genres').update({ name: 'x' }).gt('id', 10).select().single(), 406, { code: 'PGRST116' })
	.then(() => gives(db.from('genres').select('name').eq('id', 11), [{ name: 'crime' }])))
await step('maxAffected', async () => {
	await fails(db.from('genres').update({ name: 'x' }).in('id', [10, 11]).maxAffected(1), 400, { code: 'PGRST124' })
	await gives(db.from('genres').select('name').in('id', [10, 11]).order('id'), [{ name: 'trips' }, { name: 'crime' }])
})
await step('delete', async () => {
	const { data, error, status } = await db.from('genres').delete().eq('id', 10)
	assert.deepEqual({ data, error, status }, { data: null, error: null, status: 204 })
	await gives(db.from('genres').delete().gte('id', 11).lt('id', 13).order('id').select(), [{ id: 11, name: 'crime' }, { id: 12, name: 'ghosts' }])
})
await step('delete: counted', async () => {
	const { count, error } = await db.from('genres').delete({ count: 'exact' }).gte('id', 13)
	assert.deepEqual({ count, error }, { count: 4, error: null })
})

await step('errors', async () => {
	await fails(db.from('genres').insert({ id: 1, name: 'again' }), 409,
		{ code: '23505', message: 'duplicate key value violates unique constraint "genres_pkey"', details: 'Key (id)=(1) already exists.', hint: null })
	await fails(db.from('books').insert({ title: 'x', author_id: 999 }), 409, { code: '23503', details: 'Key (author_id)=(999) is not present in table "authors".' })
	await fails(db.from('books').insert({ title: '' }), 400, { code: '23514' })
	await fails(db.from('books').insert({ title: null }), 400, { code: '23502' })
	await fails(db.from('authors').insert({ name: 'x', mood: 'bored' }), 400, { code: '22P02' })
	await fails(db.from('genres').insert({ id: 20, name: 'x', colour: 1 }), 400, { code: 'PGRST204', message: "Could not find the 'colour' column of 'genres' in the schema cache" })
	await fails(db.from('genres').delete().eq('id', 1), 409, { code: '23503' })
	await fails(db.from('nowhere').insert({ id: 1 }), 404, { code: 'PGRST205' })
})
