// Answers as its caller asks, with what it got.
const cors = {
	'access-control-allow-origin': '*',
	'access-control-allow-headers': 'authorization, x-client-info, apikey, content-type, x-region',
}

async function read(request) {
	const type = request.headers.get('content-type') ?? ''
	if (type.startsWith('multipart/form-data')) {
		const parts = [...await request.formData()]
		return Promise.all(parts.map(async ([name, part]) => [name, typeof part === 'string' ? part : `${part.name}:${await part.text()}`]))
	}
	if (type === 'application/octet-stream') return [...await request.bytes()]
	return request.text()
}

Deno.serve(async (request) => {
	if (request.method === 'OPTIONS') return new Response('ok', { headers: cors })

	const url = new URL(request.url)
	const got = {
		method: request.method, type: request.headers.get('content-type')?.split(';')[0] ?? null, body: await read(request),
		region: request.headers.get('x-region'), forced: url.searchParams.get('forceFunctionRegion'),
	}
	switch (url.searchParams.get('as')) {
	case 'text': return new Response(JSON.stringify(got), { headers: cors })
	case 'bytes': return new Response(Uint8Array.of(0, 1, 254, 255), { headers: { ...cors, 'content-type': 'application/octet-stream' } })
	case 'pdf': return new Response('%PDF', { headers: { ...cors, 'content-type': 'application/pdf' } })
	case 'form': {
		const form = new FormData()
		form.append('name', 'Émma')
		form.append('file', new File(['content'], 'a.txt'))
		return new Response(form, { headers: cors })
	}
	case 'events': {
		let n = 0
		const events = new ReadableStream({
			async pull(controller) {
				controller.enqueue(new TextEncoder().encode(`data: ${++n}\n\n`))
				if (n === 3) controller.close()
			},
		})
		return new Response(events, { headers: { ...cors, 'content-type': 'text/event-stream' } })
	}
	case 'refused': return Response.json({ reason: 'no' }, { status: 418, headers: cors })
	case 'throw': throw new Error('thrown')
	}
	return Response.json(got, { headers: cors })
})
