// The README's requests by a client that is generated from the OpenAPI document. Both forms of a body compile, and a
// body without a required member does not.
import createClient from 'openapi-fetch'
import type { paths } from './openapi.js'

declare const process: { env: { SOCLE_URL: string } } // for want of Node's own types

const api = createClient<paths>({ baseUrl: process.env.SOCLE_URL })

// content returns the content of a response that must not be a failure.
function content<C>({ data, error }: { data?: { content: C }, error?: unknown }): C {
	if (error !== undefined) throw new Error(JSON.stringify(error))
	return data!.content
}

function equal<T>(got: T, want: T) {
	if (got !== want) throw new Error(`got ${got}, want ${want}`)
}

const email = 'ada@example.com'
const password = 'correct horse battery'
equal(content(await api.POST('/users', { body: { username: 'ada', email, password } })).roleId, 1)
const { data: session } = await api.POST('/users/login', { body: { email, password } })
const authorization = { Authorization: `Bearer ${session!.metadata.token}` }

const project = content(await api.POST('/projects', { headers: authorization, body: { name: 'Book shop' } })).uuid
const header = { 'X-Project': project }
api.use({
	onRequest({ request }) {
		request.headers.set('Authorization', authorization.Authorization)
	},
})

const table = content(await api.POST('/tables', {
	params: { header },
	body: { name: 'books', columns: [{ name: 'id', type: 'serial', primary: true }, { name: 'title', type: 'text', notNull: true }] },
}))
equal(table.name, 'books')

const books = { header, path: { fullTableName: 'books' } }
const price = content(await api.POST('/tables/{fullTableName}/columns', {
	params: books, body: { name: 'price', type: 'numeric(10,2)', defaultValue: '9.90' },
}))
equal(price.position, 3)
await api.POST('/tables/{fullTableName}/columns', {
	params: books, body: { columns: [{ name: 'pages', type: 'integer' }, { name: 'isbn', type: 'text' }] },
}).then(content)
await api.POST('/tables/{fullTableName}/columns', {
	params: books,
	// @ts-expect-error: a column has a type
	body: { name: 'no_type' },
})

const renamed = content(await api.PUT('/tables/{tableUUID}/rename', {
	params: { header, path: { tableUUID: 'books' } }, body: { name: 'titles' },
}))
equal(renamed.name, 'titles')
const { error } = await api.PUT('/tables/{tableUUID}/rename', {
	params: { header, path: { tableUUID: 'titles' } }, body: { name: '1984' },
})
equal(error!.metadata.fields[0]!.field, 'name')

const key = await api.POST('/projects/{projectUUID}/keys', {
	params: { path: { projectUUID: project } }, body: { name: 'my server', kind: 'secret' },
})
equal(typeof key.data!.metadata.key, 'string')

await api.POST('/functions/{schema}', {
	params: { header, path: { schema: 'public' } },
	body: {
		name: 'with_tax', parameters: [{ name: 'net', type: 'numeric' }], return_type: 'numeric', language: 'sql',
		definition: 'select net * 1.19',
	},
}).then(content)
await api.DELETE('/functions/{schema}/{functionName}', {
	params: { header, path: { schema: 'public', functionName: 'with_tax' } },
}).then(content)

const formUUID = content(await api.POST('/forms', { params: { header }, body: { name: 'Feedback' } })).uuid
const field = content(await api.POST('/forms/{formUUID}/fields', {
	params: { path: { formUUID } }, body: { label: 'Your name', type: 'text' },
}))
await api.POST('/forms/{formUUID}/fields', {
	params: { path: { formUUID } }, body: { fields: [{ label: 'Age', type: 'number' }] },
}).then(content)
const changed = content(await api.PUT('/forms/{formUUID}/fields/{fieldUUID}', {
	params: { path: { formUUID, fieldUUID: field.uuid } },
	body: { label: 'How was it?', type: 'select', options: 'good, bad', is_required: true },
}))
equal(changed.options, '["good","bad"]')

const containerUUID = content(await api.POST('/containers', { params: { header }, body: { name: 'notes' } })).uuid
const file = content(await api.POST('/containers/{containerUUID}/files', {
	params: { header, path: { containerUUID } },
	body: { full_file_name: '2026/hello.txt', file: 'Hello from Socle.\n' },
	bodySerializer({ file, full_file_name }) {
		const form = new FormData()
		form.set('full_file_name', full_file_name!)
		form.set('file', new Blob([file], { type: 'text/plain' }), 'hello.txt')
		return form
	},
}))
const download = await api.GET('/containers/{containerUUID}/files/{fileUUID}/download', {
	params: { header, path: { containerUUID, fileUUID: file.uuid } }, parseAs: 'text',
})
equal(download.data, 'Hello from Socle.\n')
const list = await api.GET('/containers/{containerUUID}/files', {
	params: { header, path: { containerUUID }, query: { limit: 10, sort: 'size', order: 'desc' } },
})
equal(list.data![0]!.content[0]!.size, 18)
const shared = content(await api.PUT('/containers/{containerUUID}', {
	params: { header, path: { containerUUID } }, body: { is_public: true },
}))
equal(await (await fetch(`${shared.url}/2026/hello.txt`)).text(), 'Hello from Socle.\n')

const backup = content(await api.POST('/backups', { params: { header }, body: {} }))
equal(backup.status, 'pending')
