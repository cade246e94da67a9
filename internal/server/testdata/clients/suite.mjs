// What the scripts share: who asks, what was said, and the steps.
import assert from 'node:assert/strict'
import { PostgrestClient } from '@supabase/postgrest-js'

// The project's address, its keys, and the token of user ann.
export const { SOCLE_PROJECT: project, SOCLE_PUBLISHABLE: publishable, SOCLE_SECRET: secret, SOCLE_USER: user } = process.env

let last = 'none'

// spoken is fetch, and keeps what was said for the report of a step that fails.
export async function spoken(url, init = {}) {
	last = `${init.method ?? 'GET'} ${url}\n${JSON.stringify([...new Headers(init.headers)])}\n${init.body ?? ''}`
	const answer = await fetch(url, init)
	last += `\n-> ${answer.status} ${JSON.stringify([...answer.headers])}\n${await answer.clone().text()}`
	return answer
}

// client returns a client that shows a key, and a token if there is one.
export function client(key, token, options = {}) {
	const headers = token ? { apikey: key, Authorization: `Bearer ${token}` } : { apikey: key }
	return new PostgrestClient(`${project}/rest/v1`, { headers, fetch: spoken, ...options })
}

// step does one thing after the other; what fails is named, with the last request and its answer.
export async function step(name, f) {
	try {
		await f()
	} catch (e) {
		process.exitCode = 1
		console.log(`${name}: ${e.stack}\nlast request: ${last}\n`)
	}
}

// gives waits for an answer, which is no error, and compares its data.
export async function gives(request, want) {
	const { data, error } = await request
	assert.equal(error, null)
	assert.deepEqual(data, want)
}

// finds compares the ids of the rows that a request finds.
export async function finds(request, ...ids) {
	const { data, error } = await request
	assert.equal(error, null)
	assert.deepEqual(data.map((row) => row.id).sort(), ids)
}

// fails waits for an error and compares the given members of it and the status.
export async function fails(request, status, want) {
	const { data, error, status: got } = await request
	assert.equal(data, null)
	assert.notEqual(error, null)
	const members = Object.fromEntries(Object.keys(want).map((name) => [name, error[name]]))
	assert.deepEqual({ status: got, ...members }, { status, ...want })
}
