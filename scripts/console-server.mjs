// A server for scripts on the console: it runs a binary with data of its own, and has an account.
import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export const root = new URL('..', import.meta.url).pathname
const { chromium } = createRequire(join(root, 'internal/server/testdata/clients/'))('playwright-core')
const email = 'ada@example.com'
const password = 'correct horse battery'

// start runs a server until stop.
async function start(binary, data) {
	const server = spawn(binary, ['serve', '--addr', '127.0.0.1:0', '--data-dir', data], { stdio: ['ignore', 'pipe', 'pipe'] })
	let printed = ''
	const url = await new Promise((resolve, reject) => {
		const read = part => {
			printed += part
			const ready = /ready at (http:\S+)/.exec(printed)
			if (ready) resolve(ready[1])
		}
		server.stdout.on('data', read)
		server.stderr.on('data', read)
		server.on('exit', code => reject(new Error(`the server ended with ${code}: ${printed}`)))
	})

	return { url, stop: () => new Promise(stopped => { server.removeAllListeners('exit').on('exit', stopped); server.kill('SIGTERM') }) }
}

// signUp creates the account and a project, and returns it with a function that calls the API.
async function signUp(server, project) {
	let headers = { 'Content-Type': 'application/json' }
	const call = async (method, path, body) => {
		const r = await fetch(server + path, { method, headers, body: JSON.stringify(body) })
		const answer = await r.json()
		if (!r.ok) throw new Error(`${method} ${path}: ${JSON.stringify(answer)}`)
		return answer
	}

	await call('POST', '/users', { username: 'ada', email, password })
	const { metadata } = await call('POST', '/users/login', { email, password })
	headers = { ...headers, Authorization: `Bearer ${metadata.token}` }
	const { uuid } = (await call('POST', '/projects', project)).content
	headers = { ...headers, 'X-Project': uuid }

	return { call, project: uuid }
}

// signIn signs in to the console.
export async function signIn(page, url) {
	await page.goto(url + '/console/sign-in')
	await page.getByLabel('E-mail address').fill(email)
	await page.getByLabel('Password').fill(password)
	await page.getByRole('button', { name: 'Sign in' }).click()
	await page.getByRole('heading', { name: 'Projects' }).waitFor()
}

// withConsole calls f with a server's address, its project, a function that calls the API, and a browser.
export async function withConsole(binary, project, f) {
	const data = mkdtempSync(join(tmpdir(), 'console-'))
	const { url, stop } = await start(binary, data)
	const browser = await chromium.launch({ executablePath: process.env.SOCLE_CHROMIUM ?? '/usr/bin/chromium-headless-shell', args: ['--no-sandbox'] })
	try {
		await f({ url, browser, ...await signUp(url, project) })
	} finally {
		await browser.close()
		await stop()
		rmSync(data, { recursive: true, force: true })
	}
}
