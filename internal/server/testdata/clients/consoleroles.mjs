// Opens every screen of the console with each role: no request is refused, because the screen knows before.
import assert from 'node:assert/strict'
import { readLine, withBrowser } from './browser.mjs'
import { screens } from './consolescreens.mjs'

const { server, project, organization, members, password } = JSON.parse(await readLine())

await withBrowser(server, async open => {
	for (const [role, email] of Object.entries(members)) {
		const page = await open({ scripts: true })
		let screen = 'sign-in'
		const refused = []
		const pending = new Set() // requests but the log, a stream that never ends
		page.on('pageerror', e => { throw e })
		page.on('request', r => r.url().startsWith(server) && !screen.includes('tab=log') && pending.add(r))
		page.on('requestfinished', r => pending.delete(r))
		page.on('requestfailed', r => pending.delete(r))
		page.on('response', r => r.status() === 403 && refused.push(`${role}, ${screen}: ${r.request().method()} ${new URL(r.url()).pathname}`))

		// settle waits until the screen is complete: nothing loads, at three looks in a row.
		const settle = async () => {
			for (let quiet = 0; quiet < 3; quiet = pending.size === 0 ? quiet + 1 : 0) {
				await page.waitForFunction(() => document.querySelector('[role=status][aria-label=Loading], [aria-busy=true]') === null)
				await page.evaluate(() => new Promise(next => requestAnimationFrame(() => requestAnimationFrame(next))))
			}
		}

		await page.goto(`${server}/console/sign-in`)
		await page.getByLabel('E-mail address').fill(email)
		await page.getByLabel('Password').fill(password)
		await page.getByRole('button', { name: 'Sign in' }).click()
		await page.getByRole('heading', { name: 'Projects' }).waitFor()

		const structure = 'tables/public.books/structure'
		const tabs = ['indexes', 'constraints', 'policies', 'grants', 'triggers', 'access'].map(tab => `${structure}?tab=${tab}`)
		const paths = [...Object.values(screens), 'tables/public.books', structure, ...tabs].map(path => `/projects/${project}/${path}`)
		for (const path of [...paths, `/organizations/${organization}`, `/organizations/${organization}?tab=projects`, `/organizations/${organization}?tab=settings`,
			'/account', '/?tab=deleted']) {
			screen = path
			await page.evaluate(path => history.pushState(null, '', path), `/console${path}`) // as a link does
			await settle()
			await page.getByRole('heading', { level: 1 }).first().waitFor()
		}
		assert.deepEqual(refused, [])

		// The session ends, and the person leaves instead of signing in again.
		await page.goto(`${server}/console/projects/${project}/extensions`)
		await page.getByRole('heading', { level: 1 }).first().waitFor()
		await page.context().clearCookies()
		await page.route('**/tables?*', route => route.fulfill({ status: 401, contentType: 'application/json', body: '{}' }))
		await page.getByRole('link', { name: 'Tables', exact: true }).click()
		const dialog = page.getByRole('dialog', { name: 'Your session has ended' })
		await dialog.getByRole('button', { name: 'Leave' }).click()
		await page.getByRole('heading', { name: 'Sign in' }).waitFor()
		await page.context().close()
	}
})
