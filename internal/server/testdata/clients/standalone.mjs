// What a server of one's own may switch on, and a project has not: plans, aggregates, GeoJSON, rollback, an anonymous role.
import assert from 'node:assert/strict'
import { PostgrestClient } from '@supabase/postgrest-js'
import { fails, gives, spoken, step } from './suite.mjs'

const { SOCLE_ROWS: url, SOCLE_USER: user } = process.env
const db = new PostgrestClient(url, { fetch: spoken, headers: { Authorization: `Bearer ${user}` } })
const anon = new PostgrestClient(url, { fetch: spoken })

await step('anonymous', async () => {
	await gives(anon.schema('second').from('things').select(), [])
	await fails(anon.from('shops').select(), 401, { code: '42501', message: 'permission denied for table shops' })
})
await step('explain', async () => {
	const { data, error } = await db.from('shops').select('name').eq('id', 1).explain()
	assert.equal(error, null)
	assert.match(data, /Aggregate/)
	const plan = await db.from('shops').select('name').eq('id', 1).explain({ analyze: true, verbose: true, settings: true, buffers: true, wal: true, format: 'json' })
	assert.equal(plan.error, null)
	assert.ok(plan.data[0]['Execution Time'] >= 0, JSON.stringify(plan.data))
	const write = await db.from('shops').update({ name: 'never' }).eq('id', 1).select().explain()
	assert.match(write.data, /Update on/)
	await gives(db.from('shops').select('name').eq('id', 1), [{ name: 'Cambridge' }])
	assert.match((await db.rpc('near', { most: 1 }).select('id').explain()).data, /Function Scan|Seq Scan|CTE/)
})
await step('geojson', async () => {
	const feature = { type: 'Feature', geometry: { type: 'Point', coordinates: [-71.5, 42.25] }, properties: { id: 1, name: 'Cambridge' } }
	await gives(db.from('shops').select().eq('id', 1).geojson(), { type: 'FeatureCollection', features: [feature] })
	await gives(db.rpc('near', { most: 1 }).geojson(), { type: 'FeatureCollection', features: [feature] })
	await gives(db.from('shops').select('at, name').eq('id', 1).geojson(), { type: 'FeatureCollection', features: [{ ...feature, properties: { name: 'Cambridge' } }] })
	await gives(db.from('shops').select().eq('id', 9).geojson(), { type: 'FeatureCollection', features: [] })
	await fails(db.from('shops').select('id').geojson(), 400, { code: '22023', message: 'geometry column is missing' })
})
await step('csv', async () => {
	await gives(db.from('shops').select('id, name').order('id').csv(), 'id,name\n1,Cambridge\n2,Kendall')
	await gives(db.rpc('near', { most: 2 }, { get: true }).select('name').csv(), 'name\nCambridge\nKendall')
	await gives(db.rpc('one').csv(), 'pgrst_scalar\n1')
	await gives(db.from('shops').insert({ id: 7, name: 'new' }).select('id, name').csv(), 'id,name\n7,new')
	await gives(db.from('shops').delete().eq('id', 7).select('id').csv(), 'id\n7')
})
await step('aggregates', () => gives(db.from('shops').select('count(), id.max(), mean:id.avg()::int'), [{ count: 2, max: 2, mean: 2 }]))
await step('count', async () => {
	for (const count of ['exact', 'planned', 'estimated']) {
		for (const options of [{ count }, { count, head: true }]) {
			const answer = await db.from('shops').select('id', options).eq('id', 1)
			assert.equal(answer.error, null)
			assert.deepEqual(answer.data, options.head ? null : [{ id: 1 }])
			assert.ok(answer.count >= 1, `${count}: ${answer.count}`)
		}
		for (const options of [{ count }, { count, get: true }, { count, head: true }]) {
			const answer = await db.rpc('near', { most: 2 }, options)
			assert.equal(answer.error, null, JSON.stringify(answer.error))
			assert.equal(answer.data?.length, options.head ? undefined : 2)
			if (count !== 'planned') assert.equal(answer.count, 2) // what is planned is not told of calls
		}
	}
	assert.equal((await db.from('shops').update({ name: 'x' }, { count: 'exact' }).eq('id', 9)).count, 0)
})
await step('rpc: get, head', async () => {
	await gives(db.rpc('one', {}, { get: true }), 1)
	await gives(db.rpc('one', {}, { head: true }), null)
	await gives(db.rpc('near', { most: 1 }, { get: true }).select('name').single(), { name: 'Cambridge' })
	await gives(db.rpc('near', { most: 0 }, { get: true }).maybeSingle(), null)
	await fails(db.rpc('near', { most: 2 }, { get: true }).single(), 406, { code: 'PGRST116', details: 'The result contains 2 rows' })
})
await step('maybeSingle', async () => {
	await gives(db.from('shops').select('id').eq('id', 9).maybeSingle(), null)
	await gives(db.from('shops').update({ name: 'Kendall' }).eq('id', 2).select('id').maybeSingle(), { id: 2 })
	await fails(db.from('shops').select('id').maybeSingle(), 406, { code: 'PGRST116' })
})
await step('schema', async () => {
	await gives(db.schema('second').from('things').insert({ id: 1 }).select(), [{ id: 1 }])
	await gives(db.schema('second').from('things').select(), [{ id: 1 }])
	await gives(db.schema('second').from('things').delete().eq('id', 1).select(), [{ id: 1 }])
	await gives(db.schema('second').rpc('two'), 2)
	await fails(db.rpc('two'), 404, { code: 'PGRST202' })
	await fails(db.schema('third').from('things').select(), 406, { code: 'PGRST106', message: 'Invalid schema: third', hint: 'Only the following schemas are exposed: api, second' })
})
await step('rollback', async () => {
	await gives(db.from('shops').insert({ id: 8, name: 'gone' }).select('id').rollback(), [{ id: 8 }])
	await gives(db.from('shops').delete().gt('id', 0).select('id').rollback(), [{ id: 1 }, { id: 2 }])
	await gives(db.from('shops').select('id').order('id'), [{ id: 1 }, { id: 2 }])
})
await step('maxAffected', async () => {
	await fails(db.from('shops').update({ name: 'all' }).gt('id', 0).maxAffected(1), 400, { code: 'PGRST124', details: 'The query affects 2 rows' })
	await fails(db.rpc('one').maxAffected(1), 400, { code: 'PGRST128' })
	await gives(db.rpc('near', { most: 1 }).select('id').maxAffected(1), [{ id: 1 }])
})
await step('headers', async () => {
	await gives(db.rpc('zone').setHeader('Prefer', 'timezone=Asia/Tokyo'), 'Asia/Tokyo')
	await fails(db.from('shops').select().setHeader('Prefer', 'handling=strict, odd'), 400, { code: 'PGRST122', details: 'Invalid preferences: odd' })
})
await step('abort', async () => {
	const controller = new AbortController()
	const asked = db.rpc('sleep').abortSignal(controller.signal)
	setTimeout(() => controller.abort(), 100)
	const { data, error } = await asked
	assert.equal(data, null)
	assert.match(error.message, /abort/i)
	await gives(db.rpc('one'), 1) // the connection is good
})
