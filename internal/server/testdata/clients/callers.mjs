// What row level security shows to whom, asked by @supabase/supabase-js, which repeats the key as a token.
import assert from 'node:assert/strict'
import { createClient } from '@supabase/supabase-js'
import { client, fails, finds, gives, project, publishable, secret, spoken, step, user } from './suite.mjs'

// No sessions and no sockets; Node.js before 22 has none.
const quiet = { realtime: { transport: class {} }, auth: { persistSession: false, autoRefreshToken: false, detectSessionInUrl: false }, global: { fetch: spoken } }
const anon = createClient(project, publishable, quiet)
const ann = createClient(project, publishable, { ...quiet, accessToken: async () => user })
const service = createClient(project, secret, quiet)
const all = (who) => who.from('books').select('id')

await step('who', async () => {
	await gives(anon.rpc('whoami'), { role: 'anon', sub: null })
	await gives(ann.rpc('whoami'), { role: 'authenticated', sub: 'ann' })
	await gives(service.rpc('whoami'), { role: 'service_role', sub: null })
	await gives(client(publishable, user).rpc('whoami'), { role: 'authenticated', sub: 'ann' })
	await gives(client(secret).rpc('whoami', {}, { get: true }), { role: 'service_role', sub: null })
})
await step('policies', async () => {
	await finds(all(anon), 1, 2, 3)
	await finds(all(ann), 1, 2, 3)
	await finds(all(service), 1, 2, 3, 4)
	await gives(anon.from('authors').select('name, books(id)').eq('id', 3), [{ name: 'Carroll', books: [] }])
})
await step('own rows', async () => {
	await gives(ann.from('notes').select('body'), [{ body: 'hers' }])
	await gives(ann.from('notes').insert({ body: 'new' }).select('owner, body').single(), { owner: 'ann', body: 'new' })
	await fails(ann.from('notes').insert({ body: 'forged', owner: 'ben' }), 403, { code: '42501', message: 'new row violates row-level security policy for table "notes"' })
	await gives(ann.from('notes').update({ body: 'x' }).eq('owner', 'ben').select(), [])
	await gives(ann.from('notes').delete().eq('body', 'new').select('body'), [{ body: 'new' }])
	await gives(ann.from('notes').delete().eq('owner', 'ben').select(), [])
	await gives(service.from('notes').select('owner').order('owner'), [{ owner: 'ann' }, { owner: 'ben' }])
})
await step('files', async () => {
	const { data, error } = await anon.storage.listBuckets()
	assert.deepEqual([data, error], [[], null])
})
await step('closed', async () => {
	await fails(anon.from('notes').select(), 401, { code: '42501', message: 'permission denied for table notes' })
	await fails(anon.from('books').insert({ title: 'x' }), 401, { code: '42501' })
	await fails(ann.from('books').delete().eq('id', 1), 403, { code: '42501' })
	await fails(anon.rpc('add', { a: 1 }), 401, { code: '42501' })
	await fails(anon.from('cheap_books').select(), 401, { code: '42501' })
})
await step('strangers', async () => {
	await fails(all(createClient(project, 'socle_publishable_none', quiet)), 401, { code: 'PGRST301' })
	await fails(all(client(publishable, `${user}x`)), 401, { code: 'PGRST301' })
})
