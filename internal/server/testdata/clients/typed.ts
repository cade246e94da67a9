// The types that a project's tables have, in the hands of the client library: what is right compiles, and what is wrong does not, since
// the compiler also refuses an @ts-expect-error above a line that has none.
import { createClient } from '@supabase/supabase-js'
import type { Database, Enums, Json, Tables, TablesInsert, TablesUpdate } from './types.js'

type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false
function is<T extends true>(): T | undefined {
	return undefined
}

const db = createClient<Database>('http://localhost', 'key')

is<Same<Enums<'mood'>, 'calm' | 'grim' | 'merry'>>()
is<Same<Tables<'genres'>, { id: number; name: string }>>()
is<Same<Tables<'cheap_books'>['title'], string | null>>()
const draft: TablesInsert<'notes'> = { body: 'mine' }
const change: TablesUpdate<'authors'> = { mood: 'grim', tags: ['novel'], about: { born: { year: 1775 } } }

export async function reading() {
	const { data: authors } = await db.from('authors').select('id, mood, tags, about').eq('mood', 'calm').throwOnError()
	is<Same<typeof authors, { id: number; mood: Enums<'mood'>; tags: string[]; about: Json }[]>>()
	// @ts-expect-error: there is no such column
	authors[0].nmae
	// @ts-expect-error: there is no such table
	db.from('auhtors')
	// @ts-expect-error: no value of the enum
	db.from('authors').select().eq('mood', 'angry')

	const { data: wrong } = await db.from('authors').select('nmae').throwOnError()
	// @ts-expect-error: the library makes an error of a column that is not there
	is<Same<typeof wrong, { nmae: string }[]>>()

	const { data: whole } = await db.from('shelves of/all').select().limit(1).single().throwOnError()
	is<Same<typeof whole, Tables<'shelves of/all'>>>()
	is<Same<(typeof whole)['moods'], Enums<'mood'>[] | null>>()
	is<Same<(typeof whole)['the id~'], number>>()

	const { data: cheap } = await db.from('cheap_books').select('title, price').throwOnError()
	is<Same<typeof cheap, { title: string | null; price: number | null }[]>>()
}

export async function embedding() {
	const { data: books } = await db.from('books').select('title, author:authors(name, mood), genres(name)').throwOnError()
	is<Same<typeof books, { title: string; author: { name: string; mood: Enums<'mood'> } | null; genres: { name: string }[] }[]>>()
	const { data: authors } = await db.from('authors').select('name, books(title)').throwOnError()
	is<Same<typeof authors, { name: string; books: { title: string }[] }[]>>()
	const { data: titles } = await db.from('authors').select('...books(titles:title)').throwOnError()
	is<Same<typeof titles, { titles: string[] }[]>>()
	const { data: wrong } = await db.from('books').select('title, authors(nmae)').throwOnError()
	// @ts-expect-error: the author has no such column
	is<Same<typeof wrong, { title: string; authors: { nmae: string } | null }[]>>()
}

export async function writing() {
	await db.from('books').insert([{ title: 'Emma', price: 7.5 }, { title: 'Persuasion', author_id: 1 }])
	await db.from('notes').insert(draft)
	await db.from('authors').update(change).eq('id', 1).lte('id', 3)
	await db.from('genres').upsert({ id: 1, name: 'romance' }, { onConflict: 'id' })
	// @ts-expect-error: a column that has to be given is missing
	await db.from('books').insert({ price: 7.5 })
	// @ts-expect-error: there is no such column
	await db.from('books').insert({ title: 'Emma', prize: 7.5 })
	// @ts-expect-error: the column counts by itself
	await db.from('notes').insert({ id: 1, body: 'mine' })
	// @ts-expect-error: the column is made of another one
	await db.from('books').update({ words: 'emma' })
	// @ts-expect-error: the type is another one
	await db.from('books').update({ price: 'much' })
	// @ts-expect-error: no value of the enum
	await db.from('authors').update({ mood: 'angry' })
}

export async function calling() {
	const { data: sum } = await db.rpc('add', { a: 1 }).throwOnError()
	is<Same<typeof sum, number>>()
	const { data: books } = await db.rpc('books_of', { author: 'Austen' }).select('title').throwOnError()
	is<Same<typeof books, { title: string }[]>>()
	const { data: authors } = await db.rpc('books_of', { author: 'Austen' }).select('title, authors(name)').throwOnError()
	is<Same<typeof authors, { title: string; authors: { name: string } | null }[]>>()
	const { data: number } = await db.rpc('twice', { a: 2 }).throwOnError()
	is<Same<typeof number, number>>()
	const { data: text } = await db.rpc('twice', { a: 'two' }).throwOnError()
	is<Same<typeof text, string>>()
	const { data: who } = await db.rpc('whoami').throwOnError()
	is<Same<typeof who, Json>>()
	const { error } = await db.rpc('calm_all')
	// @ts-expect-error: there is no such function
	await db.rpc('ad', { a: 1 })
	// @ts-expect-error: the parameter has another type
	await db.rpc('add', { a: 'one' })
	return error
}
