// What a person does with an edge function in the console: a call, its log, an older version, a secret, and its end.
import assert from 'node:assert/strict'

// runEdgeFunction works on a function that was deployed twice.
export async function runEdgeFunction(page, at, project, api, inspect) {
	const deploy = code => api('PUT', `/projects/${project}/edge-functions/hello`, { code, verify_jwt: false })

	await page.goto(at('edge-functions'))
	await page.getByText('socle functions deploy hello').waitFor()
	await inspect(page, 'edge-functions-empty')
	await deploy(`Deno.serve(() => new Response('the first version'))`)
	await deploy(`Deno.serve(async r => { console.log('<b>called</b>'); return new Response(r.method + ' ' + r.headers.get('authorization') + ' ' + await r.text()) })`)

	// The call has what was typed, and not the person's own token.
	await page.goto(at('edge-functions'))
	await page.getByRole('link', { name: 'hello' }).click()
	await page.getByLabel('Body').fill('<i>typed</i>')
	await page.getByRole('button', { name: 'Call function' }).click()
	const answer = page.getByLabel('Answer', { exact: true })
	await answer.getByText('POST null <i>typed</i>').waitFor()
	await page.getByRole('cell', { name: '<b>called</b>' }).waitFor()
	await inspect(page, 'edge-function')

	await page.getByRole('button', { name: /^Roll back to/ }).click()
	await page.getByRole('dialog').getByRole('button', { name: 'Roll back' }).click()
	await page.getByText('answers from the next process on').waitFor()
	await page.getByRole('button', { name: 'Call function' }).click()
	await answer.getByText('the first version').waitFor()

	await page.goto(at('edge-functions?tab=secrets'))
	await page.getByRole('button', { name: 'Add secret' }).first().click()
	await page.getByLabel('Name').fill('STRIPE_KEY')
	await page.getByLabel('Value', { exact: true }).fill('s3cret')
	await page.getByRole('dialog').getByRole('button', { name: 'Set secret' }).click()
	await page.getByRole('cell', { name: 'STRIPE_KEY', exact: true }).waitFor()
	assert.doesNotMatch(await page.content(), /s3cret/)
	await inspect(page, 'edge-function-secrets')

	await page.goto(at('edge-functions/hello'))
	await page.getByRole('button', { name: 'Delete', exact: true }).click()
	const sure = page.getByRole('dialog', { name: 'Delete edge function' })
	await sure.getByLabel('Type hello to confirm').fill('hello')
	await sure.getByRole('button', { name: 'Delete function' }).click()
	await page.getByText('No edge function yet').waitFor()
}
