// Measures the console: node scripts/console-vitals.mjs BINARY
//
// For each screen it prints the largest contentful paint of a first visit, and the longest interaction of a click. For a
// table of a million rows it scrolls for five seconds, and prints the times between frames.
import { signIn, withConsole } from './console-server.mjs'

const [binary] = process.argv.slice(2)
const line = (...cells) => console.log(cells.map((c, i) => (i === 0 ? String(c).padEnd(30) : String(c).padStart(14))).join(''))
const ms = n => `${Math.round(n)} ms`

// observe keeps the largest contentful paint and the longest event of each page.
function observe() {
	globalThis.vitals = { lcp: 0, inp: 0 }
	new PerformanceObserver(list => list.getEntries().forEach(e => { vitals.lcp = e.startTime })).observe({ type: 'largest-contentful-paint', buffered: true })
	new PerformanceObserver(list => list.getEntries().forEach(e => { if (e.interactionId) vitals.inp = Math.max(vitals.inp, e.duration) }))
		.observe({ type: 'event', durationThreshold: 16, buffered: true })
}

// scroll turns the wheel for five seconds, and returns the times between frames.
async function scroll(page) {
	await page.evaluate(() => {
		globalThis.frames_ = []
		let last = performance.now()
		const frame = now => {
			frames_.push(now - last)
			last = now
			requestAnimationFrame(frame)
		}
		requestAnimationFrame(frame)
	})
	const end = Date.now() + 5000
	while (Date.now() < end) await page.mouse.wheel(0, 400)
	const frames = (await page.evaluate(() => frames_)).sort((a, b) => a - b)

	return { median: frames[Math.floor(frames.length / 2)], p99: frames[Math.floor(frames.length * 0.99)], longest: frames.at(-1),
		slow: frames.filter(f => f > 50).length, all: frames.length }
}

await withConsole(binary, { name: 'Vitals' }, async ({ url, browser, call, project }) => {
	await call('POST', '/sql', { read_only: false, timeout_ms: 30_000, query: `
		create table rows (id bigint primary key, title text, price numeric, at timestamptz default now());
		insert into rows select i, 'Row ' || i, i / 100.0 from generate_series(1, 1000000) i;
		analyze rows` })

	const context = await browser.newContext({ viewport: { width: 1280, height: 844 } })
	await context.addInitScript(observe)
	const page = await context.newPage()
	const loads = []
	page.on('requestfinished', r => r.url().includes('/console/assets/') && loads.push(r.sizes()))
	await page.goto(url + '/console/sign-in')
	await page.getByRole('heading', { name: 'Sign in' }).waitFor()
	line('screen', 'LCP', 'longest event')
	line('sign-in', ms(await page.evaluate(() => vitals.lcp)), '')
	await signIn(page, url)
	await page.goto(`${url}/console/projects/${project}`)
	await page.waitForLoadState('networkidle')
	const bytes = (await Promise.all(loads)).reduce((sum, l) => sum + l.responseBodySize, 0)
	line('first load, compressed', `${Math.round(bytes / 1000)} kB`)
	const at = path => `${url}/console/projects/${project}/${path}`

	for (const [name, path] of Object.entries({ home: '', tables: 'tables', rows: 'tables/public.rows', sql: 'sql', users: 'users', requests: 'requests', settings: 'settings' })) {
		await page.goto(at(path))
		await page.getByRole('heading', { level: 1 }).first().waitFor()
		await page.waitForLoadState('networkidle')
		await page.getByRole('button', { name: 'Requests' }).first().click()
		await page.getByRole('dialog').waitFor()
		await page.keyboard.press('Escape')
		await page.getByRole('dialog').waitFor({ state: 'detached' })
		const { lcp, inp } = await page.evaluate(() => vitals)
		line(name, ms(lcp), ms(inp))
	}

	await page.goto(at('tables/public.rows'))
	const grid = page.getByRole('grid')
	await grid.getByText('Row 1', { exact: true }).waitFor()
	await grid.hover()
	const f = await scroll(page)
	line('a million rows, 5 s of wheel', `${f.all} frames`, `${f.slow} > 50 ms`)
	line('time between frames', `median ${ms(f.median)}`, `  p99 ${ms(f.p99)}`, `  longest ${ms(f.longest)}`)
})
