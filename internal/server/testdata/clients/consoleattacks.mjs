// Attacks on the console: texts that would run in a careless page, a page that frames it, stored files that act on it.
import assert from 'node:assert/strict'
import { createServer } from 'node:http'

const script = `document.title='owned'`
export const markup = `<img src=x onerror="${script}">`

// plant stores markup wherever the API stores a text that the console shows.
export async function plant(server, token, project, api) {
	const name = `"${markup.replaceAll('"', '""')}"`
	const kind = name.replace('<', 'a <')
	await api('POST', '/sql', { read_only: false, query: `
		create type ${kind} as enum ('${markup.replaceAll("'", "''")}');
		create table ${name} (${name} text primary key, "kind" ${kind});
		insert into ${name} (${name}) values ($h$${markup}$h$);
		create policy ${name} on ${name} to public using (true);
		create view hostile as select $h$${markup}$h$ as note;
		create function ${name}() returns text language sql as $$ select 'x' $$;
		comment on function ${name}() is $h$${markup}$h$` })

	const user = await api('POST', `/projects/${project}/end-users`, { email: 'hostile@example.com', password: 'correct horse battery',
		user_metadata: { name: markup, avatar_url: `javascript:${script}` } })
	const form = await api('POST', '/forms', { name: markup })
	const field = await api('POST', `/forms/${form.content.uuid}/fields`, { label: markup, type: 'text' })
	const [fieldUUID] = [field.content].flat().map(f => f.uuid)
	await api('PUT', `/forms/${form.content.uuid}`, { state: 'open' })
	await api('POST', `/forms/${form.content.uuid}/responses`, { answers: { [fieldUUID]: markup } })

	// A failed request is a line of the log.
	await fetch(`${server}/projects/${project}/rest/v1/${encodeURIComponent(markup)}`, { headers: { Authorization: `Bearer ${token}`, 'User-Agent': markup } })

	const container = await api('POST', '/containers', { name: 'hostile', is_public: true })
	for (const [file, type, content] of [
		['page.html', 'text/html', `<script>${script}; fetch('/console/session/refresh', { method: 'POST', body: '{}' })</script><iframe src="/console/"></iframe>`],
		['picture.svg', 'image/svg+xml', `<svg xmlns="http://www.w3.org/2000/svg"><script>${script}; fetch('/console/session/refresh', { method: 'POST' })</script></svg>`],
		[`'onerror='${script}'.txt`, 'text/plain', markup],
	]) {
		const body = new FormData()
		body.append('file', new Blob([content], { type }), file)
		const r = await fetch(`${server}/containers/${container.content.uuid}/files`, { method: 'POST', body, headers: { Authorization: `Bearer ${token}`, 'X-Project': project } })
		assert.equal(r.status, 201, `${file}: ${await r.text()}`)
	}

	return { user: user.content.uuid, form: form.content.uuid, container: container.content.uuid }
}

// refuseFrames shows the console in another site's frame.
export async function refuseFrames(context, address) {
	const site = createServer((_, w) => {
		w.setHeader('Content-Type', 'text/html')
		w.end(`<title>site</title><iframe src="${address}"></iframe>`)
	})
	await new Promise(listening => site.listen(0, '127.0.0.1', listening))
	const page = await context.newPage()
	await page.goto(`http://127.0.0.1:${site.address().port}/`)
	assert.equal(page.frames().length, 2)
	assert.equal(page.frames()[1].url(), 'chrome-error://chromewebdata/')
	await page.close()
	await new Promise(closed => site.close(closed))
}

// openStoredFiles opens files as pages of the server's own origin: they reach no path of the console.
export async function openStoredFiles(context, server, project) {
	const page = await context.newPage()
	const asked = []
	page.on('request', r => r.url().includes('/console') && asked.push(r.url()))
	for (const file of ['page.html', 'picture.svg']) {
		const opened = await page.goto(`${server}/projects/${project}/storage/v1/object/public/hostile/${file}`).catch(error => error)
		if (opened instanceof Error) assert.match(opened.message, /Download is starting|ERR_ABORTED/)
		else assert.match((await opened.allHeaders())['content-security-policy'], /sandbox/)
	}
	await page.close()
	assert.deepEqual(asked, [])
}
