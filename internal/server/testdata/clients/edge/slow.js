// Waits until its caller leaves, and tells how many left.
let left = 0

Deno.serve((request) => {
	if (new URL(request.url).searchParams.has('left')) return Response.json({ left })

	return new Promise((resolve) => request.signal.addEventListener('abort', () => {
		left++
		resolve(new Response('late'))
	}))
})
