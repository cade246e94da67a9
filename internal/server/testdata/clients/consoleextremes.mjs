// Data at the limits, in the console: each shows a screen that makes sense.
import assert from 'node:assert/strict'
import { readLine, withBrowser } from './browser.mjs'

const { server, project, email, password, token } = JSON.parse(await readLine())
const at = path => `${server}/console/projects/${project}/${path}`
const table = name => at(`tables/${encodeURIComponent(`public.${name}`)}`)

async function api(method, path, body) {
	const r = await fetch(server + path, { method, body: body && JSON.stringify(body),
		headers: { Authorization: `Bearer ${token}`, 'X-Project': project, 'Content-Type': 'application/json' } })
	const answer = await r.json()
	assert.ok(answer.success, `${method} ${path}: ${JSON.stringify(answer)}`)
	return answer
}

const sql = query => api('POST', '/sql', { read_only: false, timeout_ms: 30_000, query })

// fill makes what the screens have to bear.
async function fill() {
	await sql(`create table wide (id int primary key, ${Array.from({ length: 1599 }, (_, i) => `c${i + 1} int`).join(', ')});
		insert into wide (id, c1599) values (1, 1599)`)
	await sql(`create table "مكتبة ""q"" 📚" (id int primary key, "العنوان" text);
		insert into "مكتبة ""q"" 📚" values (1, 'من اليمين \u202eexe.txt')`)
	await sql(`create table extremes (id int primary key, n numeric, d double precision, big bigint, at timestamptz, day date);
		insert into extremes values (1, 'NaN', 'Infinity', 9223372036854775807, 'infinity', '-infinity'),
			(2, 12345678901234567890.123456789012345678901234567890, '-Infinity', -9223372036854775808, '4713-01-01 BC', '294276-12-31')`)
	await sql(`create table guarded (id int primary key, text text); insert into guarded values (1, 'x');
		alter table guarded enable row level security; grant select on guarded to anon;
		create policy broken on guarded for select to anon using (id / (id - 1) > 0)`)
	await sql(`create table heavy (id int primary key, content text); insert into heavy values (1, repeat('x', 50 * 1024 * 1024)), (2, 'light')`)
	for (let i = 0; i < 5; i++) {
		await sql(`do $$ begin for i in ${i * 400}..${i * 400 + 399} loop execute 'create table many_' || i || ' (id int)'; end loop; end $$`)
		await sql(`insert into auth.users (id, email, email_confirmed_at)
			select gen_random_uuid(), 'person-' || i || '@example.com', now() from generate_series(${i * 4000}, ${i * 4000 + 3999}) i`)
	}
}

await fill()
await withBrowser(server, async open => {
	const page = await open({ scripts: true })
	page.on('pageerror', e => { throw e })
	await page.goto(`${server}/console/sign-in`)
	await page.getByLabel('E-mail address').fill(email)
	await page.getByLabel('Password').fill(password)
	await page.getByRole('button', { name: 'Sign in' }).click()
	await page.getByRole('heading', { name: 'Projects' }).waitFor()
	const grid = page.getByRole('grid')
	const visit = async address => {
		await page.waitForLoadState('networkidle') // leaving ends requests, which the console reports
		await page.goto(address)
	}
	const narrow = async name => assert.deepEqual([name, await page.evaluate(() =>
		document.documentElement.scrollWidth - document.documentElement.clientWidth)], [name, 0])

	// 1,600 columns: those in sight are drawn.
	await visit(table('wide'))
	await grid.getByText('c1', { exact: true }).waitFor()
	assert.ok(await page.locator('[role=columnheader]').count() < 100, 'all columns are drawn')
	await narrow('wide')

	// Names and texts from right to left.
	await visit(at('tables'))
	await visit(table('مكتبة "q" 📚'))
	await grid.getByText('العنوان', { exact: true }).waitFor()
	await grid.getByText('من اليمين').waitFor()
	await narrow('from right to left')

	// Numbers and times stay as PostgreSQL prints them.
	await visit(table('extremes'))
	for (const text of ['NaN', 'Infinity', '9223372036854775807', 'infinity', '-infinity', '12345678901234567890.123456789012345678901234567890',
		'-9223372036854775808']) await grid.getByText(text, { exact: true }).first().waitFor()

	// A policy that fails.
	await visit(table('guarded') + '?as=anon')
	await page.getByText(/division by zero/i).first().waitFor()

	// A cell of 50 MB.
	await visit(table('heavy'))
	await grid.getByText('light', { exact: true }).or(page.getByRole('alert')).first().waitFor()
	await narrow('heavy')

	// 2,000 tables, 20,000 users.
	await visit(at('tables'))
	await page.getByRole('link', { name: /many_/ }).first().waitFor()
	assert.ok(await page.getByRole('link', { name: /many_/ }).count() <= 200, 'all tables are drawn')
	await visit(at('diagram'))
	await page.getByRole('heading', { level: 1 }).waitFor()
	await visit(at('users?search=person-19999'))
	await page.getByRole('link', { name: 'person-19999@example.com' }).waitFor()
	await visit(at('users?page=700'))
	await page.getByText(/Page 700 of/).waitFor()

	// A paused project.
	await api('POST', `/projects/${project}/pause`)
	await visit(at(''))
	await page.getByText('This project is paused').waitFor()
	await visit(table('extremes'))
	await page.getByText(/paused/).first().waitFor()
	await visit(at(''))
	await page.getByRole('button', { name: 'Resume project' }).click()
	await page.getByText('Largest tables').waitFor()
})
