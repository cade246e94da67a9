// Chromium for the tests of pages: without scripts, and with a list of everything that goes wrong.
import assert from 'node:assert/strict'
import { createInterface } from 'node:readline'
import { chromium } from 'playwright-core'
import { SMTPServer } from 'smtp-server'

const patience = 120_000 // milliseconds: only ends a hang

// startMailServer returns the port of a mail server, and a function that waits for the next mail to an address.
export async function startMailServer() {
	const taken = [], waiting = []
	const deliver = () => {
		for (const w of [...waiting]) {
			const i = taken.findIndex(m => m.to === w.to)
			if (i < 0) continue
			waiting.splice(waiting.indexOf(w), 1)
			w.resolve(taken.splice(i, 1)[0])
		}
	}
	const server = new SMTPServer({
		authOptional: true, disabledCommands: ['STARTTLS', 'AUTH'], disableReverseLookup: true,
		onData(stream, session, done) {
			const parts = []
			stream.on('data', part => parts.push(part))
			stream.on('end', () => {
				// Quoted-printable: only what the plain text of these mails needs.
				const text = Buffer.concat(parts).toString().replaceAll('=\r\n', '').replaceAll(/=([0-9A-F]{2})/g, (_, h) => String.fromCharCode(parseInt(h, 16)))
				taken.push({ to: session.envelope.rcptTo[0].address, text })
				done()
				deliver()
			})
		},
	})
	server.on('error', () => {})
	await new Promise(listening => server.listen(0, '127.0.0.1', listening))

	return {
		port: server.server.address().port,
		mail: to => new Promise(resolve => { waiting.push({ to, resolve }); deliver() }),
		close: () => new Promise(closed => server.close(closed)),
	}
}

// readLine returns the next line of the standard input.
export const readLine = () => new Promise(resolve => {
	const lines = createInterface({ input: process.stdin })
	lines.once('line', line => { lines.close(); resolve(line) })
})

// withBrowser calls f with a function that opens a page, without scripts unless they are asked for. It fails if a page asks a host that is not among the
// origins, breaks its policy, or has no response, unless it is meant to be blocked. Statuses are the test's own.
export async function withBrowser(server, f) {
	const browser = await chromium.launch({
		executablePath: process.env.SOCLE_CHROMIUM, timeout: patience,
		args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
			'--disable-component-update', '--disable-sync'],
	})
	const problems = []
	try {
		await f(async (options = {}) => {
			const context = await browser.newContext({ javaScriptEnabled: options.scripts ?? false, viewport: { width: 1280, height: 900 } })
			const page = await context.newPage()
			page.setDefaultTimeout(patience)
			if (options.blocked) return page
			page.on('console', m => m.type() === 'error' && !m.text().startsWith('Failed to load resource') && problems.push(`console: ${m.text()}`))
			page.on('requestfailed', async r => {
				const left = r.failure().errorText === 'net::ERR_ABORTED' && !r.isNavigationRequest() // leaving a page ends its requests
				if (!left && (await r.response())?.status() !== 204) problems.push(`${r.url()}: ${r.failure().errorText}`)
			})
			page.on('request', r => {
				const { protocol, origin } = new URL(r.url())
				if (protocol !== 'data:' && ![server, ...(options.origins ?? [])].includes(origin)) problems.push(`request to ${r.url()}`)
			})
			return page
		})
	} finally {
		await browser.close()
	}
	assert.deepEqual(problems, [])
}

// look checks that the page fits a phone, has a label for each input, and follows the color scheme; it keeps pictures if a folder is given.
export async function look(page, name) {
	for (const [kind, width, colorScheme] of [['wide', 1280, 'light'], ['phone', 390, 'light'], ['dark', 1280, 'dark']]) {
		await page.setViewportSize({ width, height: 844 })
		await page.emulateMedia({ colorScheme })
		const seen = await page.evaluate(() => ({
			overflow: document.documentElement.scrollWidth - document.documentElement.clientWidth,
			unlabelled: [...document.querySelectorAll('input:not([type=hidden]), select, textarea')].filter(e => !e.labels.length).map(e => e.outerHTML),
			ground: getComputedStyle(document.body).backgroundColor.match(/\d+/g).map(Number),
		}))
		assert.deepEqual([name, kind, seen.overflow, seen.unlabelled], [name, kind, 0, []])
		assert.equal(seen.ground[0] < 128, colorScheme === 'dark', `${name}: the ground is ${seen.ground} when ${colorScheme}`)
		if (process.env.SOCLE_SCREENSHOTS) await page.screenshot({ path: `${process.env.SOCLE_SCREENSHOTS}/${name}-${kind}.png`, fullPage: true })
	}
	await page.setViewportSize({ width: 1280, height: 900 })
	await page.emulateMedia({ colorScheme: 'light' })
}
