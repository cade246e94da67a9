// Asks the project's database by a driver from npm.
import pg from 'pg'

Deno.serve(async (request) => {
	const client = new pg.Client({ connectionString: Deno.env.get('SUPABASE_DB_URL') })
	await client.connect()
	const { rows } = await client.query('select title, length(title) from books where title <> $1 order by title', [await request.text()])
	await client.end()
	return Response.json(rows)
})
