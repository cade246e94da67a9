// What a person typed into the console survives the network, another tab and the end of the session, and is saved once.
import assert from 'node:assert/strict'

// editThroughFaults edits titles of the table books, each under another fault.
export async function editThroughFaults(context, address, password, rows) {
	const page = await context.newPage()
	const editor = page.getByLabel('Edit title')
	const titleOf = async id => (await rows('GET', `books?id=eq.${id}&select=title`))[0].title
	const edit = async (from, to) => {
		await page.getByRole('grid').getByText(from, { exact: true }).dblclick()
		await page.keyboard.press('Control+A')
		await page.keyboard.type(to)
		await page.keyboard.press('Enter')
	}
	const failed = async (text, typed) => {
		await editor.getByRole('alert').filter({ hasText: text }).waitFor()
		assert.equal(await editor.locator('input, textarea').inputValue(), typed)
	}
	const save = async typed => {
		await editor.getByRole('button', { name: 'Save', exact: true }).click()
		await page.getByText(`title is now ${typed}`).waitFor()
	}
	await page.goto(address)
	await page.getByRole('grid').getByText('Book 10', { exact: true }).waitFor()

	await context.setOffline(true)
	await edit('Book 10', 'Typed offline')
	await failed('The server does not answer', 'Typed offline')
	await context.setOffline(false)
	await save('Typed offline')
	assert.equal(await titleOf(10), 'Typed offline')

	// The change arrives, its answer does not.
	await page.route('**/rest/v1/books?*', async route => {
		if (route.request().method() !== 'PATCH') return route.fallback()
		await route.fetch()
		await route.abort()
	})
	await edit('Book 11', 'Saved unheard')
	await failed('The server does not answer', 'Saved unheard')
	await page.unroute('**/rest/v1/books?*')
	await save('Saved unheard')
	assert.equal(await titleOf(11), 'Saved unheard')

	// The answer is slow: the value stands in its cell meanwhile, and is sent once.
	let sent = 0, answer
	const answered = new Promise(resolve => { answer = resolve })
	await page.route('**/rest/v1/books?*', async route => {
		if (route.request().method() === 'PATCH') sent++
		await answered
		return route.fallback()
	})
	await edit('Book 15', 'Saved slowly')
	await page.getByRole('grid').getByText('Saved slowly', { exact: true }).waitFor()
	answer()
	await page.getByText('title is now Saved slowly').waitFor()
	await page.unroute('**/rest/v1/books?*')
	assert.deepEqual([sent, await titleOf(15)], [1, 'Saved slowly'])

	// Another tab was first.
	await rows('PATCH', 'books?id=eq.12', { title: 'Theirs' })
	await edit('Book 12', 'Mine')
	await failed('someone changed this to “Theirs”', 'Mine')
	assert.equal(await titleOf(12), 'Theirs')
	await save('Mine')

	// The session ends; the screen stays.
	const cookies = await context.cookies()
	await context.clearCookies()
	await page.route('**/rest/v1/books?*', route => route.request().method() === 'PATCH'
		? route.fulfill({ status: 401, contentType: 'application/json', body: '{"code":"PGRST301","message":"JWT expired"}' }) : route.fallback())
	await edit('Book 13', 'Typed without a session')
	const dialog = page.getByRole('dialog', { name: 'Your session has ended' })
	await dialog.getByLabel('Password').fill(password)
	await page.unroute('**/rest/v1/books?*')
	await dialog.getByRole('button', { name: 'Sign in' }).click()
	await dialog.waitFor({ state: 'detached' })
	await save('Typed without a session')
	assert.equal(await titleOf(13), 'Typed without a session')

	// An inserted row whose answer is lost is not inserted again unasked.
	await page.route(/rest.v1.books\??$/, async route => {
		if (route.request().method() !== 'POST') return route.fallback()
		await route.fetch()
		await route.abort()
	})
	await page.getByRole('button', { name: 'Insert row' }).click()
	const insert = page.getByRole('dialog', { name: /Insert a row/ })
	await insert.getByLabel('title').first().fill('Inserted unheard')
	await insert.getByRole('button', { name: 'Insert row' }).click()
	await insert.getByText('The server does not answer').waitFor()
	await page.unrouteAll()
	await insert.getByRole('button', { name: 'Insert row' }).click()
	await insert.getByText('A row with these values is there').waitFor()
	assert.equal((await rows('DELETE', 'books?title=eq.Inserted%20unheard')).length, 1)

	await page.close()
	await context.addCookies(cookies)
}
