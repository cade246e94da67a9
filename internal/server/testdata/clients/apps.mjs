// Two applications on supabase-js, a chat with presence and a shared list of todos, for two people in Chromium.
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { createClient } from '@supabase/supabase-js'
import { withBrowser } from './browser.mjs'

const { SOCLE_PROJECT: project, SOCLE_PUBLISHABLE: key, SOCLE_SECRET: secret } = process.env
const admin = createClient(project, secret, { auth: { persistSession: false } })
for (const name of ['ann', 'bob', 'eve']) {
	const { error } = await admin.auth.admin.createUser({ email: `${name}@example.com`, password: 'correct horse battery', email_confirm: true,
		app_metadata: { team: name === 'eve' ? 'other' : 'ours' } })
	assert.equal(error, null)
}

const files = { '/supabase.js': 'node_modules/@supabase/supabase-js/dist/umd/supabase.js', '/chat': 'apps/chat.html', '/todos': 'apps/todos.html' }
const server = createServer(async (request, response) => {
	const script = request.url.endsWith('.js')
	response.setHeader('Content-Type', `text/${script ? 'javascript' : 'html'}; charset=utf-8`)
	response.end(request.url === '/config.js' ? `const config = ${JSON.stringify({ url: project, key })}` : await readFile(files[request.url]))
})
await new Promise(listening => server.listen(0, '127.0.0.1', listening))
const site = `http://127.0.0.1:${server.address().port}`

// shows waits until a list has the texts.
async function shows(page, list, ...texts) {
	const read = list => [...document.querySelectorAll(`#${list} li`)].map(line => line.textContent)
	const deadline = Date.now() + 60_000
	for (;;) {
		const lines = await page.evaluate(read, list)
		if (JSON.stringify(lines) === JSON.stringify(texts)) return
		if (Date.now() > deadline) assert.deepEqual(lines, texts)
		await page.waitForTimeout(50)
	}
}

await withBrowser(site, async open => {
	const enter = async (path, name) => {
		const page = await open({ scripts: true, origins: [new URL(project).origin] })
		page.on('console', message => message.type() === 'error' && console.error(name, path, message.text()))
		await page.goto(site + path)
		await page.evaluate(name => signIn(`${name}@example.com`, 'correct horse battery'), name)
		return page
	}
	const text = (page, id, words) => page.waitForFunction(([id, words]) => document.getElementById(id).textContent === words, [id, words])

	const ann = await enter('/chat', 'ann'), bob = await enter('/chat', 'bob')
	for (const page of [ann, bob]) await shows(page, 'online', 'ann', 'bob')
	await ann.fill('#text', 'hello, Bob')
	await text(bob, 'typing', 'ann is typing')
	await ann.click('text=Send')
	for (const page of [ann, bob]) await shows(page, 'messages', 'ann: hello, Bob')
	await bob.fill('#text', 'hello, Ann ✓')
	await bob.click('text=Send')
	for (const page of [ann, bob]) await shows(page, 'messages', 'ann: hello, Bob', 'bob: hello, Ann ✓')

	const late = await enter('/chat', 'ann') // a second window of hers: one person with two presences
	await shows(late, 'messages', 'ann: hello, Bob', 'bob: hello, Ann ✓')
	await shows(late, 'online', 'ann', 'bob')
	await bob.evaluate(() => leave())
	for (const page of [ann, late]) await shows(page, 'online', 'ann')

	const first = await enter('/todos', 'ann'), second = await enter('/todos', 'bob'), other = await enter('/todos', 'eve')
	for (const page of [first, second, other]) await text(page, 'status', 'signed in')
	for (const task of ['milk', 'bread', 'tea']) {
		await first.fill('#task', task)
		await first.click('text=Add')
		await first.waitForFunction(() => document.getElementById('task').value === '')
	}
	for (const page of [first, second]) await shows(page, 'todos', 'milk×', 'bread×', 'tea×')

	await second.check('[aria-label=bread]')
	await first.waitForFunction(() => document.querySelector('[aria-label=bread]').checked)
	await first.click('#todos li:first-child button')
	for (const page of [first, second]) await shows(page, 'todos', 'bread×', 'tea×')
	await shows(other, 'todos') // another team's
})
server.close()
