// Tables as those see them who make user interfaces: react-admin by @raphiniert/ra-data-postgrest, Refine by what its provider asks of supabase-js.
import assert from 'node:assert/strict'
import provider from '@raphiniert/ra-data-postgrest'
import { createClient } from '@supabase/supabase-js'
import { finds, gives, project, secret, spoken, step } from './suite.mjs'

// What react-admin calls fetch with, and makes of an answer.
async function fetchJson(url, options = {}) {
	const headers = new Headers(options.headers)
	headers.set('apikey', secret)
	const answer = await spoken(url, { ...options, headers })
	const body = await answer.text()
	const json = body === '' ? undefined : JSON.parse(body)
	if (!answer.ok) throw Object.assign(new Error(json?.message ?? answer.statusText), { status: answer.status, body: json })
	return { status: answer.status, headers: answer.headers, body, json }
}

const admin = provider.default({
	apiUrl: `${project}/rest/v1`,
	httpClient: fetchJson,
	defaultListOp: 'eq',
	primaryKeys: new Map([['book_genres', ['book_id', 'genre_id']]]),
	schema: () => 'public',
})
const page = (n, size) => ({ page: n, perPage: size })
const by = (field, order = 'ASC') => ({ field, order })
const ids = ({ data }) => data.map((row) => row.id)

await step('react-admin: a page of a list', async () => {
	const { data, total } = await admin.getList('books', { pagination: page(2, 3), sort: by('title', 'DESC'), filter: {}, meta: { columns: ['id', 'title'] } })
	assert.deepEqual({ data, total }, { data: [{ id: 1, title: 'Emma' }], total: 4 })
})
await step('react-admin: filters', async () => {
	const list = (filter, meta) => admin.getList('books', { pagination: page(1, 10), sort: by('id'), filter, meta })
	assert.deepEqual(ids(await list({ author_id: 1 })), [1, 2])
	assert.deepEqual(ids(await list({ 'title@ilike': 'SNARK' })), [4])
	assert.deepEqual(ids(await list({ 'title@ilike': 'snark hunt' })), [4]) // each word is a filter: title[0] and title[1]
	assert.deepEqual(ids(await list({ 'title@like': 'tale (new)' })), [3])
	assert.deepEqual(ids(await list({ 'price@gte': 9, 'id@in': '(2,3,4)' })), [2, 3])
	assert.deepEqual(ids(await list({ '@or': { 'price@is': 'null', 'published@lt': '1816-01-01' } })), [1, 4])
	assert.deepEqual(ids(await list({ 'price@not.is': 'null', 'words@wfts': 'persuasion' })), [2])
	const { data } = await admin.getList('authors', { pagination: page(1, 10), sort: by('active'), filter: { 'about->born->>town@like': 'ton' }, meta: { nullslast: true, embed: ['books'], columns: 'name' } })
	assert.deepEqual(data, [
		{ name: 'Brontë', books: data[0].books },
		{ name: 'Austen', books: data[1].books },
	])
	assert.equal(data[1].books.length, 2)
})
await step('react-admin: keys of more than one column', async () => {
	const { data, total } = await admin.getList('book_genres', { pagination: page(1, 2), sort: by('id'), filter: {} })
	assert.deepEqual({ data, total }, { data: [{ book_id: 1, genre_id: 1, id: '[1,1]' }, { book_id: 1, genre_id: 2, id: '[1,2]' }], total: 5 })
	assert.deepEqual((await admin.getOne('book_genres', { id: '[1,2]' })).data, { book_id: 1, genre_id: 2, id: '[1,2]' })
	assert.deepEqual(ids(await admin.getMany('book_genres', { ids: ['[1,2]', '[4,3]'] })), ['[1,2]', '[4,3]'])
	assert.equal((await admin.create('book_genres', { data: { book_id: 4, genre_id: 1 } })).data.id, '[4,1]')
	assert.equal((await admin.delete('book_genres', { id: '[4,1]' })).data.book_id, 4)
})
await step('react-admin: one, many, those that refer', async () => {
	assert.equal((await admin.getOne('books', { id: 3, meta: { embed: ['authors'] } })).data.authors.name, 'Brontë')
	assert.deepEqual(ids(await admin.getMany('books', { ids: [1, 4] })), [1, 4])
	const { data, total } = await admin.getManyReference('books', { target: 'author_id', id: 1, pagination: page(1, 1), sort: by('published', 'DESC'), filter: {} })
	assert.deepEqual({ ids: data.map((b) => b.id), total }, { ids: [2], total: 2 })
	await assert.rejects(admin.getOne('books', { id: 99 }), { status: 406, message: 'Cannot coerce the result to a single JSON object' })
	const fetched = await admin.getList('books', { pagination: page(1, 1), sort: by('id'), filter: {}, meta: { prefetch: ['authors'] } })
	assert.equal(fetched.meta.prefetched.authors[0].name, 'Austen')
})
await step('react-admin: changes', async () => {
	const { data } = await admin.create('books', { data: { title: 'Agnes Grey', author_id: 2 } })
	assert.equal(data.title, 'Agnes Grey')
	const changed = await admin.update('books', { id: data.id, data: { ...data, price: 5 }, previousData: data })
	assert.deepEqual(changed.data, { ...data, price: 5 })
	const other = await admin.create('books', { data: { title: 'Villette', author_id: 2 } })
	const both = [data.id, other.data.id]
	assert.deepEqual((await admin.updateMany('books', { ids: both, data: { price: 6 } })).data.sort(), both)
	assert.equal((await admin.delete('books', { id: data.id })).data.price, 6)
	assert.deepEqual((await admin.deleteMany('books', { ids: both })).data, [other.data.id])
	await assert.rejects(admin.create('books', { data: { title: '' } }), (e) => e.status === 400 && e.body.code === '23514')
})
await step('react-admin: functions as lists', async () => {
	const { data, total } = await admin.getList('rpc/books_of', { pagination: page(1, 1), sort: by('title', 'DESC'), filter: { 'author@': 'Austen', 'price@gt': 1 } })
	assert.deepEqual({ ids: data.map((b) => b.id), total }, { ids: [2], total: 2 })
})

const db = createClient(project, secret, { realtime: { transport: class {} }, auth: { persistSession: false, autoRefreshToken: false, detectSessionInUrl: false }, global: { fetch: spoken } })

await step('refine: a page, ordered by what is embedded', async () => {
	const asked = db.from('books').select('*', { count: 'exact' })
	asked.range(0, 1)
	asked.select('id, authors(name)').order('name', { ascending: false, foreignTable: 'authors' })
	asked.order('id', { ascending: true })
	asked.ilike('title', '%a%')
	const { data, count, error } = await asked
	assert.equal(error, null)
	assert.deepEqual({ ids: data.map((b) => b.id), count }, { ids: [1, 2], count: 4 })
})
await step('refine: filters', async () => {
	const books = () => db.from('books').select('id')
	await finds(books().filter('title', 'not.ilike', '%a%').filter('price', 'not.is', null))
	await finds(books().or('title.ilike.%emma%,price.gt.10'), 1, 3)
	await finds(db.from('authors').select('id').filter('tags', 'cs', '{novel}').filter('tags', 'not.cs', '{wit}'), 2)
	await finds(books().ilike('title', 'Hunt%').is('price', null), 4)
})
await step('refine: changes', async () => {
	const made = db.from('genres').insert({ id: 50, name: 'letters' })
	made.select('*')
	await gives(made, [{ id: 50, name: 'letters' }])
	const changed = db.from('genres').update({ name: 'diaries' })
	changed.match({ id: 50 })
	changed.select('*')
	await gives(changed, [{ id: 50, name: 'diaries' }])
	const gone = db.from('genres').delete()
	gone.match({ id: 50 })
	await gives(gone, null)
})
