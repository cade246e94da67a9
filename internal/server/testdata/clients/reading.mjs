import assert from 'node:assert/strict'
import { client, fails, finds, gives, publishable, secret, step } from './suite.mjs'

const db = client(secret)
const authors = () => db.from('authors').select('id')
const books = () => db.from('books').select('id')

await step('select: everything', () =>
	gives(db.from('genres').select(), [{ id: 1, name: 'romance' }, { id: 2, name: 'satire' }, { id: 3, name: 'nonsense' }]))
await step('select: alias, cast, JSON path', () =>
	gives(db.from('authors').select('who:name, id::text, town:about->born->>town, about->born->year, about->pets->>0').eq('id', 1),
		[{ who: 'Austen', id: '1', town: 'Steventon', year: 1775, pets: 'cat' }]))
await step('select: enum, array, range, null', () =>
	gives(db.from('books').select('pages, price, authors(mood, tags)').eq('id', 4), [{ pages: '[300,400)', price: null, authors: { mood: 'calm', tags: ['verse'] } }]))

await step('embed: to one', () => gives(db.from('books').select('title, author:authors(name)').eq('id', 1), [{ title: 'Emma', author: { name: 'Austen' } }]))
await step('embed: to many, ordered and limited', () =>
	gives(db.from('authors').select('name, books(title)').eq('id', 1).order('title', { referencedTable: 'books', ascending: false }).limit(1, { referencedTable: 'books' }),
		[{ name: 'Austen', books: [{ title: 'Persuasion' }] }]))
await step('embed: range within', () =>
	gives(db.from('authors').select('books(id)').eq('id', 1).order('id', { referencedTable: 'books' }).range(1, 1, { referencedTable: 'books' }), [{ books: [{ id: 2 }] }]))
await step('embed: many to many', () =>
	gives(db.from('books').select('title, genres(name)').eq('id', 1).order('id', { referencedTable: 'genres' }), [{ title: 'Emma', genres: [{ name: 'romance' }, { name: 'satire' }] }]))
await step('embed: the same table', () =>
	gives(db.from('authors').select('name, mentor:mentor_id(name), pupils:authors!mentor_id(name)').order('id').limit(2), [
		{ name: 'Austen', mentor: null, pupils: [{ name: 'Brontë' }, { name: 'Carroll' }] },
		{ name: 'Brontë', mentor: { name: 'Austen' }, pupils: [] },
	]))
await step('embed: a view', () => gives(db.from('cheap_books').select('title, authors(name)'), [{ title: 'Emma', authors: { name: 'Austen' } }]))
await step('embed: nested', () =>
	gives(db.from('genres').select('name, books(title, authors(name))').eq('id', 3), [{ name: 'nonsense', books: [{ title: 'Hunting the Snark', authors: { name: 'Carroll' } }] }]))
await step('embed: inner, filtered', () => finds(db.from('books').select('id, authors!inner(name)').eq('authors.name', 'Austen'), 1, 2))
await step('embed: left, filtered', () =>
	gives(db.from('authors').select('id, books(id)').gt('books.price', 10).lte('id', 2).order('id'), [{ id: 1, books: [] }, { id: 2, books: [{ id: 3 }] }]))
await step('embed: spread', () => gives(db.from('books').select('title, ...authors(name)').eq('id', 1), [{ title: 'Emma', name: 'Austen' }]))
await step('embed: counted', () => gives(db.from('authors').select('books(count)').eq('id', 1), [{ books: [{ count: 2 }] }]))
await step('embed: ordered by', () => gives(db.from('books').select('id, authors(name)').not('price', 'is', null).order('authors(name)', { ascending: false }).order('id').limit(1),
	[{ id: 3, authors: { name: 'Brontë' } }]))
await step('embed: or within', () => finds(db.from('books').select('id, authors!inner(name)').or('name.eq.Brontë,name.eq.Carroll', { referencedTable: 'authors' }), 3, 4))
await step('embed: unrelated', () => fails(db.from('genres').select('authors(name)'), 400, { code: 'PGRST200' }))

await step('eq', () => finds(books().eq('title', 'Shirley, a "tale" (new)'), 3))
await step('neq', () => finds(authors().neq('mood', 'grim'), 1, 3))
await step('gt', () => finds(books().gt('price', 7.5), 2, 3))
await step('gte', () => finds(books().gte('price', 9.25), 2, 3))
await step('lt', () => finds(books().lt('published', '1817-01-01'), 1))
await step('lte', () => finds(books().lte('published', '1817-12-20'), 1, 2))
await step('like', () => finds(authors().like('name', 'A%'), 1))
await step('ilike', () => finds(authors().ilike('name', '%R%'), 2, 3))
await step('likeAllOf', () => finds(authors().likeAllOf('name', ['C%', '%ll']), 3))
await step('likeAnyOf', () => finds(authors().likeAnyOf('name', ['A%', '%ll']), 1, 3))
await step('ilikeAllOf', () => finds(authors().ilikeAllOf('name', ['c%', '%LL']), 3))
await step('ilikeAnyOf', () => finds(authors().ilikeAnyOf('name', ['a%', '%LL']), 1, 3))
await step('regexMatch', () => finds(authors().regexMatch('name', '^[AB]'), 1, 2))
await step('regexIMatch', () => finds(authors().regexIMatch('name', '^[ab]'), 1, 2))
await step('is', async () => {
	await finds(authors().is('active', true), 1)
	await finds(authors().is('active', false), 2)
	await finds(authors().is('active', null), 3)
})
await step('isDistinct', () => finds(authors().isDistinct('active', true), 2, 3))
await step('in', () => finds(books().in('title', ['Emma', 'a, b', '(c)']), 1))
await step('notIn', () => finds(books().notIn('id', [1, 2]), 3, 4))
await step('contains', async () => {
	await finds(authors().contains('tags', ['wit', 'novel']), 1)
	await finds(authors().contains('about', { born: { year: 1818 } }), 2)
	await finds(books().contains('pages', '[60,70)'), 1, 2)
})
await step('containedBy', async () => {
	await finds(authors().containedBy('tags', ['verse', 'moor', 'novel']), 2, 3)
	await finds(authors().containedBy('about', { born: { year: 1832 }, died: 1898 }), 3)
	await finds(books().containedBy('pages', '[0,160)'), 1, 2)
})
await step('rangeGt', () => finds(books().rangeGt('pages', '[50,150)'), 3, 4))
await step('rangeGte', () => finds(books().rangeGte('pages', '[50,150)'), 2, 3, 4))
await step('rangeLt', () => finds(books().rangeLt('pages', '[200,300)'), 1, 2))
await step('rangeLte', () => finds(books().rangeLte('pages', '[200,300)'), 1, 2, 3))
await step('rangeAdjacent', () => finds(books().rangeAdjacent('pages', '[150,200)'), 2, 3))
await step('overlaps', async () => {
	await finds(authors().overlaps('tags', ['moor', 'verse']), 2, 3)
	await finds(books().overlaps('pages', '[90,250)'), 1, 2, 3)
})
await step('textSearch', async () => {
	await finds(books().textSearch('words', "'hunt' & 'snark'"), 4)
	await finds(books().textSearch('words', 'hunts snarks', { type: 'plain', config: 'english' }), 4)
	await finds(books().textSearch('words', 'the snark', { type: 'phrase', config: 'english' }), 4)
	await finds(books().textSearch('title', 'emma or snark', { type: 'websearch', config: 'english' }), 1, 4)
})
await step('match', () => finds(books().match({ author_id: 1, title: 'Emma' }), 1))
await step('not', async () => {
	await finds(books().not('id', 'in', '(1,2)'), 3, 4)
	await finds(books().not('price', 'is', null), 1, 2, 3)
})
await step('or', async () => {
	await finds(books().or('id.eq.1,and(price.gt.10,title.like.Shir*)'), 1, 3)
	await finds(books().or('title.eq."Shirley, a \\"tale\\" (new)",not.and(id.gt.1,id.lt.9)'), 1, 3)
})
await step('filter', async () => {
	await finds(books().filter('price', 'gt', '9'), 2, 3)
	await finds(authors().filter('about->born->>year', 'gte', '1818'), 2, 3)
	await finds(authors().filter('name', 'eq(any)', '{Austen,Carroll}'), 1, 3)
})

await step('order', async () => {
	const order = async (...by) => (await by.reduce((q, b) => q.order(...b), books()).throwOnError()).data.map((row) => row.id)
	assert.deepEqual(await order(['price']), [1, 2, 3, 4])
	assert.deepEqual(await order(['price', { nullsFirst: true }]), [4, 1, 2, 3])
	assert.deepEqual(await order(['price', { ascending: false, nullsFirst: false }]), [3, 2, 1, 4])
	assert.deepEqual(await order(['author_id', { ascending: false }], ['id', { ascending: false }]), [4, 3, 2, 1])
})
await step('limit, range', async () => {
	await finds(books().order('id').limit(2), 1, 2)
	await finds(books().order('id').range(1, 2), 2, 3)
	await finds(books().order('id').range(10, 20))
	await fails(books().limit(-1), 416, { code: 'PGRST103' })
})

await step('single', async () => {
	await gives(books().eq('id', 1).single(), { id: 1 })
	await fails(books().eq('id', 9).single(), 406, { code: 'PGRST116', details: 'The result contains 0 rows', hint: null, message: 'Cannot coerce the result to a single JSON object' })
	await fails(books().eq('author_id', 1).single(), 406, { code: 'PGRST116', details: 'The result contains 2 rows' })
})
await step('maybeSingle', async () => {
	await gives(books().eq('id', 9).maybeSingle(), null)
	await gives(books().eq('id', 1).maybeSingle(), { id: 1 })
	await fails(books().eq('author_id', 1).maybeSingle(), 406, { code: 'PGRST116' })
})
await step('count', async () => {
	for (const count of ['exact', 'planned', 'estimated']) {
		const answer = await db.from('books').select('id', { count }).eq('author_id', 1).order('id').limit(1)
		assert.equal(answer.error, null)
		assert.deepEqual(answer.data, [{ id: 1 }])
		if (count === 'planned') assert.ok(answer.count >= 1, `planned ${answer.count}`)
		else if (count === 'estimated') assert.ok(answer.count >= 2, `estimated ${answer.count}`)
		else assert.equal(answer.count, 2)
	}
})
await step('head', async () => {
	const { data, error, count, status } = await db.from('books').select('*', { head: true, count: 'exact' })
	assert.deepEqual({ data, error, count, status }, { data: null, error: null, count: 4, status: 200 })
})
await step('csv', () => gives(db.from('books').select('id,title').eq('author_id', 2).csv(), 'id,title\n3,"Shirley, a ""tale"" (new)"'))
await step('stripNulls', async () => {
	await gives(db.from('books').select('id,price').eq('id', 4).stripNulls(), [{ id: 4 }])
	await gives(db.from('books').select('id,price').eq('id', 4).stripNulls().single(), { id: 4 })
})
await step('explain is off', () => fails(books().explain(), 406, { code: 'PGRST107' }))

await step('schema', async () => {
	await finds(db.schema('public').from('books').select('id').eq('id', 1), 1)
	await fails(db.schema('auth').from('books').select('id'), 406, { code: 'PGRST106' })
})
await step('abortSignal', async () => {
	const { data, error } = await db.rpc('sleep').abortSignal(AbortSignal.timeout(200))
	assert.equal(data, null)
	assert.match(error.message, /abort/i)
})
await step('throwOnError', async () => {
	await assert.rejects(async () => await books().eq('id', 'x').throwOnError(), { name: 'PostgrestError', code: '22P02' })
	const { data } = await books().eq('id', 1).throwOnError()
	assert.deepEqual(data, [{ id: 1 }])
})
await step('errors', async () => {
	await fails(db.from('bookz').select(), 404, { code: 'PGRST205', details: null, hint: "Perhaps you meant the table 'public.books'", message: "Could not find the table 'public.bookz' in the schema cache" })
	await fails(db.from('books').select('colour'), 400, { code: '42703', message: 'column books.colour does not exist' })
	await fails(books().eq('price', 'dear'), 400, { code: '22P02' })
	await fails(books().filter('id', 'near', '1'), 400, { code: 'PGRST100' })
	await fails(client(publishable).from('genres').select(), 401, { code: '42501', message: 'permission denied for table genres' })
	await fails(client('socle_secret_none').from('genres').select(), 401, { code: 'PGRST301' })
})
