// A person's first hour in the web console: from the first sign-up to rows, SQL and a backup; then every screen, with axe, in hostile data.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { readLine, withBrowser } from './browser.mjs'
import { markup, openStoredFiles, plant, refuseFrames } from './consoleattacks.mjs'
import { followChanges, runSchedule, sendMessage, testWebhook } from './consoleevents.mjs'
import { editThroughFaults } from './consolefaults.mjs'
import { runEdgeFunction } from './consolefunctions.mjs'
import { lookAfterUsers, shareQuery } from './consolepeople.mjs'
import { screens } from './consolescreens.mjs'

const { server, setupToken } = JSON.parse(await readLine())
const console_ = server + '/console'
const password = 'correct horse battery'
const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
const violations = [] // what axe found
const hostile = `<img src=x onerror="document.title='owned'"><script>document.title='owned'</script>`

// inspect checks a screen: its title, no markup from data, nothing wider than the window, and what axe knows.
async function inspect(page, name) {
	await page.locator('h1').first().waitFor() // also behind a dialog
	const settled = selector => page.waitForFunction(s => document.querySelector(s) === null, selector)
	await settled('[role=status][aria-label=Loading], [aria-busy=true]')
	for (const [kind, width, colorScheme] of [['wide', 1280, 'light'], ['phone', 390, 'dark']]) {
		await page.setViewportSize({ width, height: 844 })
		await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' })
		await page.waitForFunction(theme => document.documentElement.dataset.theme === theme, colorScheme)
		const overflow = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth)
		assert.deepEqual([name, kind, overflow], [name, kind, 0])
		let found
		for (let i = 0; i < 5 && (i === 0 || found.length > 0); i++) found = await page.evaluate(async () => { // until the screen rests
			for (let frames = 0; frames < 3; frames++) await new Promise(requestAnimationFrame)
			return (await axe.run(document, { resultTypes: ['violations'] })).violations
				.map(v => `${v.id}: ${v.nodes.map(n => n.html).slice(0, 3).join(' | ')}`)
		})
		violations.push(...found.map(v => `${name}, ${kind}: ${v}`))
		if (process.env.SOCLE_SCREENSHOTS) await page.screenshot({ path: `${process.env.SOCLE_SCREENSHOTS}/console-${name}-${kind}.png` })
	}
	await page.setViewportSize({ width: 1280, height: 844 })
	await page.emulateMedia({ colorScheme: 'light' })
	assert.notEqual(await page.title(), 'owned')
}

await withBrowser(server, async open => {
	const page = await open({ scripts: true })
	page.on('pageerror', e => { throw e })
	await page.context().addInitScript({ content: axe })

	// The start page leads to the console, and a new install to the creation of its administrator.
	await page.goto(server)
	await page.getByRole('link', { name: 'Open the console' }).click()
	await page.waitForURL('**/console/sign-up*')
	await inspect(page, 'sign-up')
	await page.goto(`${console_}/sign-up#setup=${setupToken}`)
	await page.getByLabel('User name').fill('ada')
	await page.getByLabel('E-mail address').fill('ada@example.com')
	await page.getByLabel('Password').fill('short')
	await page.getByRole('button', { name: 'Create account' }).click()
	await page.getByText('at least 8 characters', { exact: false }).last().waitFor()
	assert.equal(await page.getByLabel('User name').inputValue(), 'ada')
	await page.getByLabel('Password').fill(password)
	await page.getByRole('button', { name: 'Create account' }).click()

	// A project.
	await page.getByRole('heading', { name: 'Projects' }).waitFor()
	await page.getByText('No project yet').waitFor()
	await inspect(page, 'projects-empty')
	await page.getByRole('button', { name: 'New project' }).first().click()
	await page.getByRole('dialog').getByLabel('Name').fill('Book shop')
	await page.getByRole('dialog').getByLabel('Description').fill(hostile)
	await page.getByRole('button', { name: 'Create project' }).click()
	await page.getByRole('heading', { name: 'Book shop' }).waitFor()
	const project = new URL(page.url()).pathname.match(/projects\/([0-9a-f-]+)/)[1]
	const at = path => `${console_}/projects/${project}/${path}`

	// The refresh token is out of the reach of scripts; a reload keeps the session.
	assert.equal(await page.evaluate(() => document.cookie + JSON.stringify({ ...localStorage })).then(s => /ey[\w-]+\.|refresh/.test(s)), false)
	const [cookie] = await page.context().cookies()
	assert.deepEqual([cookie.httpOnly, cookie.sameSite, cookie.path], [true, 'Strict', '/console'])
	await page.reload()
	await page.getByRole('heading', { name: 'Book shop' }).waitFor()

	// Tables by SQL, with texts that would run in a careless page.
	const token = await page.evaluate(async () => (await (await fetch('/console/session/refresh', { method: 'POST', body: '{}',
		headers: { 'Content-Type': 'application/json' } })).json()).metadata.token)
	const api = async (method, path, body) => {
		const r = await fetch(server + path, { method, body: body && JSON.stringify(body),
			headers: { Authorization: `Bearer ${token}`, 'X-Project': project, 'Content-Type': 'application/json' } })
		const reply = await r.json()
		assert.ok(reply.success, `${method} ${path}: ${JSON.stringify(reply)}`)
		return reply
	}
	await api('POST', '/sql', { read_only: false, query: `
		create table authors (id bigint generated always as identity primary key, name text not null);
		create table books (id bigint generated always as identity primary key, title text not null, author_id bigint references authors,
			price numeric(20,2), big bigint default 9007199254740993, tags text[], details jsonb, in_print boolean);
		create table "<b>x</b> ""q"" 📚" (id int primary key, note text);
		create function greet(name text) returns text language sql as $$ select 'Hello ' || name $$;
		insert into authors (name) values ('Jane Austen'), ($h$${hostile}$h$);
		insert into books (title, author_id, price, details) select 'Book ' || i, 1, i, jsonb_build_object('n', i) from generate_series(1, 500) i;
		insert into books (title) values ($h$${hostile}$h$);
		comment on table books is $h$${hostile}$h$` })
	await api('POST', `/projects/${project}/end-users`, { email: 'reader@example.com', password })

	// Rows: read, insert, edit, undo.
	await page.goto(at('tables'))
	await page.getByRole('link', { name: 'books' }).first().click()
	const grid = page.getByRole('grid')
	await grid.getByText('Book 1', { exact: true }).waitFor()
	assert.ok(await grid.getByText('9007199254740993').first().isVisible())
	await inspect(page, 'rows')
	await grid.getByText('Book 2', { exact: true }).dblclick()
	await page.keyboard.press('Control+A')
	await page.keyboard.type('Emma')
	await page.keyboard.press('Enter')
	await grid.getByText('Emma', { exact: true }).waitFor()
	await page.waitForFunction(async ([url, token, project]) => {
		const r = await fetch(url, { headers: { Authorization: `Bearer ${token}` } })
		return (await r.json())[0]?.title === 'Emma'
	}, [`${server}/projects/${project}/rest/v1/books?id=eq.2&select=title`, token, project])

	const rows = async (method, path, body) => (await fetch(`${server}/projects/${project}/rest/v1/${path}`, { method, body: body && JSON.stringify(body),
		headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json', Prefer: 'return=representation' } })).json()
	await editThroughFaults(page.context(), at('tables/public.books'), password, rows)

	// See as: closed by default.
	await page.getByLabel(/see as/i).selectOption({ label: 'See as anon' }).catch(() => page.getByLabel(/see as/i).selectOption('anon'))
	await page.getByText(/permission denied|no rows|grant/i).first().waitFor()

	// SQL.
	await page.goto(at('sql'))
	await page.locator('.cm-content').click()
	await page.keyboard.press('Control+A')
	await page.keyboard.type(`select count(*) as n, 'x' as "<i>" from books`)
	await page.keyboard.press('Control+Enter')
	await page.getByText('501').first().waitFor()
	await page.keyboard.press('Escape') // closes the completion
	await page.getByLabel('Run as').selectOption('anon')
	await page.getByRole('button', { name: 'Run', exact: true }).click()
	await page.getByText('permission denied for table books').waitFor()
	assert.equal(new URL(page.url()).searchParams.get('as'), 'anon')
	await page.getByLabel('Run as').selectOption('')
	await page.getByRole('button', { name: 'Run', exact: true }).click()
	await page.getByText('501').first().waitFor()
	await page.getByRole('button', { name: 'Show chart' }).click()
	await page.getByRole('img', { name: 'n over <i>, 1 values' }).locator('canvas').waitFor()
	await page.getByRole('button', { name: 'Show rows' }).click()
	await inspect(page, 'sql')
	await shareQuery(page, at, inspect)

	// Every screen, with markup in every text.
	const planted = await plant(server, token, project, api)
	await openStoredFiles(page.context(), server, project)
	await refuseFrames(page.context(), at(''))
	const structure = encodeURIComponent('public.books')
	const { sql: _, ...others } = screens
	for (const [name, path] of Object.entries({
		...others, structure: `tables/${structure}/structure`, hostile: `tables/${encodeURIComponent('public.<b>x</b> "q" 📚')}`,
		planted: `tables/${encodeURIComponent(`public.${markup}`)}`, access: `tables/${encodeURIComponent(`public.${markup}`)}/structure?tab=access`,
		policies: `tables/${encodeURIComponent(`public.${markup}`)}/structure?tab=policies`, user: `users/${planted.user}`,
		container: `files/${planted.container}`, form: `forms/${planted.form}`, responses: `forms/${planted.form}?tab=responses`,
	})) {
		await page.goto(at(path))
		await inspect(page, name)
	}
	await followChanges(page, at, api, inspect)
	await testWebhook(page, at, inspect)
	await sendMessage(page, at, inspect)
	await runSchedule(page, at, inspect)
	await lookAfterUsers(page, server, at, project, api, inspect)
	await runEdgeFunction(page, at, project, api, inspect)

	// The diagram as a file.
	await page.goto(at('diagram'))
	const [drawn] = await Promise.all([page.waitForEvent('download'), page.getByRole('button', { name: 'Export SVG' }).click()])
	const svg = readFileSync(await drawn.path(), 'utf8')
	assert.match(svg, /^<svg [^]*books[^]*<\/svg>$/)
	assert.doesNotMatch(svg, /<script|href=/)

	// A secret of the vault: typed once, shown never.
	await page.goto(at('keys?tab=vault'))
	await page.getByRole('button', { name: 'Create secret' }).first().click()
	await page.getByLabel('Name').fill('stripe_key')
	await page.getByLabel('Secret', { exact: true }).fill('s3cret')
	await page.getByRole('dialog').getByRole('button', { name: 'Create secret' }).click()
	await page.getByRole('cell', { name: 'stripe_key', exact: true }).waitFor()
	await page.getByRole('button', { name: 'Requests' }).click()
	assert.doesNotMatch(await page.getByRole('dialog').textContent(), /s3cret/)
	await page.keyboard.press('Escape')
	await page.getByRole('button', { name: 'Delete secret stripe_key' }).click()
	await page.getByRole('dialog').getByRole('button', { name: 'Delete secret' }).click()
	await page.getByText('No secret yet').waitFor()

	for (const [name, path] of Object.entries({ account: '/account', users: '/admin/users', instance: '/admin/settings', health: '/admin/health' })) {
		await page.goto(console_ + path)
		await inspect(page, `admin-${name}`)
	}
	await page.goto(console_ + '/nothing/here')
	await page.getByText('There is no page here').waitFor()

	// A deleted project comes back.
	await api('DELETE', `/projects/${(await api('POST', '/projects', { name: 'Forgotten' })).content.uuid}`)
	await page.goto(`${console_}/?tab=deleted`)
	await page.getByRole('button', { name: 'Restore project Forgotten' }).click()
	await page.getByRole('dialog').getByRole('button', { name: 'Restore project' }).click()
	await page.getByText('No deleted project').waitFor()
	await inspect(page, 'projects-deleted')

	// Two tabs share the session, and one signs both out.
	const other = await page.context().newPage()
	await Promise.all([page.goto(console_), other.goto(console_)])
	await Promise.all([page, other].map(p => p.getByRole('heading', { name: 'Projects' }).waitFor()))
	await page.getByRole('button', { name: 'Account of ada' }).click()
	await page.getByRole('menuitem', { name: 'Sign out' }).click()
	await page.getByRole('heading', { name: 'Sign in' }).waitFor()
	await other.reload()
	await other.getByRole('heading', { name: 'Sign in' }).waitFor()
	await inspect(other, 'sign-in')
	assert.deepEqual(violations, [])
})
