// tus-js-client uploads a file, is stopped in the middle, and goes on.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { Upload } from 'tus-js-client'

const { SOCLE_URL: server, SOCLE_CONTAINER: container, SOCLE_TOKEN: token, SOCLE_ID: id } = process.env
const headers = { Authorization: `Bearer ${token}`, 'X-Project': id }
const bytes = randomBytes((5 << 20) + 17)

function upload(options) {
	return new Promise((resolve, reject) => {
		const u = new Upload(bytes, {
			endpoint: `${server}/containers/${container}/tus`, headers, chunkSize: 1 << 20, retryDelays: null,
			metadata: { filename: 'folder/résumé.bin', filetype: 'application/x-bytes' },
			onError: reject, onSuccess: () => resolve(u), ...options,
			onChunkComplete: (size, accepted) => options.onChunkComplete?.(u, accepted, resolve),
		})
		u.start()
	})
}

const stopped = await upload({ onChunkComplete: (u, accepted, resolve) => accepted >= 2 << 20 && u.abort().then(() => resolve(u)) })
let first
await upload({ uploadUrl: stopped.url, onChunkComplete: (u, accepted) => { first ??= accepted } })
assert.ok(first > 2 << 20, `it went on at ${first}`)

const answer = await fetch(`${server}/files/${id}/${container}/folder/r%C3%A9sum%C3%A9.bin`, { headers })
assert.equal(answer.status, 200)
assert.equal(answer.headers.get('content-type'), 'application/x-bytes')
assert.ok(bytes.equals(Buffer.from(await answer.arrayBuffer())))

const given = await upload({ metadata: { filename: 'given up' }, onChunkComplete: (u, accepted, resolve) => u.abort(true).then(() => resolve(u)) })
assert.equal((await fetch(given.url, { method: 'HEAD', headers: { ...headers, 'Tus-Resumable': '1.0.0' } })).status, 404)

// What comes from a stream has no length before its end.
const { Readable } = await import('node:stream')
await new Promise((resolve, reject) => {
	new Upload(Readable.from([bytes.subarray(0, 3 << 20), bytes.subarray(3 << 20)], { objectMode: false }), {
		endpoint: `${server}/containers/${container}/tus`, headers, chunkSize: 1 << 20, retryDelays: null, uploadLengthDeferred: true,
		metadata: { filename: 'streamed' }, onError: reject, onSuccess: resolve,
	}).start()
})
const whole = await fetch(`${server}/files/${id}/${container}/streamed`, { headers })
assert.equal(whole.status, 200)
assert.ok(bytes.equals(Buffer.from(await whole.arrayBuffer())))
