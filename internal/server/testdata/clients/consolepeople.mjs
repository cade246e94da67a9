// What a person does for the users of an application in the console: invites one, mails a link, ends a session, tries a mail's text.
import assert from 'node:assert/strict'

// lookAfterUsers invites a user, and helps one who cannot sign in.
export async function lookAfterUsers(page, server, at, project, api, inspect) {
	const mailed = async (recipient, kind) => {
		await page.goto(at('mails'))
		await page.getByRole('row').filter({ hasText: recipient }).filter({ hasText: kind }).first().waitFor()
	}

	await page.goto(at('users'))
	await page.getByRole('button', { name: 'Invite user' }).click()
	const invitation = page.getByRole('dialog', { name: 'Invite user' })
	await invitation.getByLabel('Address').fill('guest@example.com')
	await invitation.getByRole('button', { name: 'Send invitation' }).click()
	await page.getByRole('heading', { name: 'guest@example.com' }).waitFor()
	await mailed('guest@example.com', 'invite')
	await page.getByRole('button', { name: 'guest@example.com' }).first().click()
	await page.frameLocator('iframe').getByRole('link', { name: 'Accept the invitation' }).waitFor()
	await inspect(page, 'mail')

	// A user with a session of an application.
	const { key } = (await api('POST', `/projects/${project}/keys`, { name: 'people', kind: 'publishable' })).metadata
	const email = 'signs-in@example.com'
	const password = 'correct horse battery'
	const { uuid } = (await api('POST', `/projects/${project}/end-users`, { email, password, is_confirmed: true })).content
	const signedIn = await fetch(`${server}/projects/${project}/auth/v1/token?grant_type=password`, { method: 'POST',
		headers: { apikey: key, 'Content-Type': 'application/json', 'User-Agent': '<b>phone</b>' }, body: JSON.stringify({ email, password }) })
	assert.equal(signedIn.status, 200)

	await page.goto(at(`users/${uuid}`))
	await page.getByRole('cell', { name: '<b>phone</b>' }).waitFor()
	await page.getByText('No second factor').waitFor()
	await page.getByText('No passkey').waitFor()
	await inspect(page, 'user-signins')
	await page.getByRole('button', { name: /^End session of/ }).click()
	await page.getByRole('dialog').getByRole('button', { name: 'End session' }).click()
	await page.getByText('Not signed in').waitFor()

	await page.getByRole('button', { name: 'Send mail' }).click()
	await inspect(page, 'user-mail')
	await page.getByRole('dialog').getByRole('button', { name: 'Send mail' }).click()
	await page.getByText(`A mail to ${email} is on its way.`).waitFor()
	await mailed(email, 'recovery')

	// A mail's text, as it is typed.
	await page.goto(at('settings?tab=auth&subject=mail'))
	await page.getByRole('button', { name: 'Edit invite' }).click()
	const form = page.getByRole('dialog', { name: 'Mail invite' })
	await form.getByText('You have been invited').waitFor()
	await form.getByLabel('Subject').fill('Come in, {{ .Data.name }}')
	await form.getByText('needs a subject, and html or text').first().waitFor()
	await form.getByLabel('Text', { exact: true }).fill('{{ .Token }} is your code')
	await form.getByText('Come in, Grace').waitFor()
	await inspect(page, 'mail-preview')
	await form.getByRole('button', { name: 'Plain text' }).click()
	await form.getByText('123456 is your code').waitFor()
	await form.getByRole('button', { name: 'Send test mail to me' }).click()
	await page.getByText('Sent to ada@example.com').waitFor()
	await page.keyboard.press('Escape')
	await mailed('ada@example.com', 'Come in, Grace')
}

// shareQuery saves the open text for all developers of the project.
export async function shareQuery(page, at, inspect) {
	await page.goto(at('sql?panel=saved'))
	const panel = page.getByRole('dialog', { name: 'Saved queries' })
	await panel.getByLabel('Save the open query as').fill('<i>count</i>')
	await panel.getByRole('button', { name: 'Save query' }).click()
	await panel.getByRole('button', { name: 'Delete <i>count</i>' }).waitFor()
	await inspect(page, 'sql-saved')
	await panel.getByLabel('Save the open query as').fill('<i>count</i>')
	await panel.getByRole('button', { name: 'Replace query' }).click()
	await panel.getByRole('button', { name: 'Delete <i>count</i>' }).click()
	await page.getByRole('dialog', { name: 'Delete saved query' }).getByRole('button', { name: 'Delete query' }).click()
	await panel.getByText('No saved query yet').waitFor()
}
