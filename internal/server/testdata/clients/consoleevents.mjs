// What a person does with events in the console: follows a table, sees changes arrive, sends a test to a webhook.
import assert from 'node:assert/strict'

// followChanges switches a table on, and sees a change of another program in the log and in the grid.
export async function followChanges(page, at, api, inspect) {
	const change = query => api('POST', '/sql', { read_only: false, query })

	await page.goto(at('realtime'))
	const follow = page.getByRole('switch', { name: 'Follow public.authors' })
	assert.equal(await follow.isChecked(), false)
	await follow.click()
	await page.locator('[role=switch][aria-label="Follow public.authors"]:checked').waitFor()

	await page.goto(at('realtime?tab=log&table=public.authors'))
	await page.getByText('following', { exact: true }).waitFor()
	await change(`insert into authors (name) values ('<b>Mary</b> Shelley')`)
	const entry = page.getByRole('list', { name: 'Changes, the newest first' }).getByRole('listitem').first()
	await entry.getByText('<b>Mary</b> Shelley').first().waitFor()
	await entry.locator('summary').click()
	await entry.getByRole('heading', { name: 'Row' }).waitFor()
	await inspect(page, 'changes-log')

	await page.goto(at('tables/public.authors'))
	await page.getByRole('button', { name: 'Live' }).click()
	await page.getByText('following', { exact: true }).waitFor()
	await change(`update authors set name = 'Mary Shelley' where name like '%Mary%'`)
	await page.getByRole('grid').getByText('Mary Shelley', { exact: true }).waitFor()
	await inspect(page, 'rows-live')
}

// testWebhook creates a webhook, whose endpoint no server has, and reads the failed delivery of a test.
export async function testWebhook(page, at, inspect) {
	await page.goto(at('webhooks'))
	await page.getByRole('button', { name: 'Create webhook' }).first().click()
	const form = page.getByRole('dialog', { name: 'New webhook' })
	await form.getByLabel('Name').fill('<i>orders</i>')
	await form.getByLabel('Endpoint').fill('https://hooks.invalid/orders')
	await form.getByRole('button', { name: 'Add a table' }).click()
	await form.getByLabel('Table', { exact: true }).selectOption('public.books')
	await form.getByLabel('Condition').fill('price=gt.10')
	await form.getByLabel('socle.user.created.v1').check()
	await inspect(page, 'webhook-new')
	await form.getByRole('button', { name: 'Create webhook' }).click()
	await page.getByText(/whsec_/).waitFor()
	await page.getByRole('button', { name: 'I have copied it' }).click()

	await page.getByRole('heading', { name: '<i>orders</i>' }).waitFor()
	await page.getByRole('button', { name: 'Send a test' }).click()
	await page.getByRole('button', { name: 'socle.webhook.test.v1' }).click()
	await page.getByRole('dialog').getByRole('cell', { name: 'none', exact: true }).first().waitFor()
	await inspect(page, 'webhook-delivery')
	await page.keyboard.press('Escape')
	await inspect(page, 'webhook')
	await page.getByRole('button', { name: 'Pause', exact: true }).click()
	await page.getByRole('button', { name: 'Resume', exact: true }).waitFor()
	await page.getByRole('link', { name: 'All webhooks' }).click()
	await page.getByRole('cell', { name: 'paused' }).waitFor()
	await inspect(page, 'webhooks-list')
}

// sendMessage creates a queue, sends a message, and archives it.
export async function sendMessage(page, at, inspect) {
	await page.goto(at('queues'))
	await page.getByRole('button', { name: 'Create queue' }).first().click()
	await page.getByRole('dialog').getByLabel('Name').fill('mails')
	await page.getByRole('dialog').getByRole('button', { name: 'Create queue' }).click()
	await page.getByRole('heading', { level: 1, name: 'mails' }).waitFor()
	await page.getByText('No message waits').waitFor()

	await page.getByRole('button', { name: 'Send a message' }).click()
	const form = page.getByRole('dialog', { name: 'Send a message' })
	await form.getByLabel('Message (JSON)').fill('{"to": "<b>ada</b>", "n": 9007199254740993}')
	await form.getByRole('button', { name: 'Send message' }).click()
	await page.getByRole('button', { name: '1', exact: true }).click()
	const message = page.getByRole('dialog', { name: 'Message 1' })
	await message.getByText('9007199254740993').waitFor()
	await inspect(page, 'queue-message')
	await message.getByRole('button', { name: 'Archive' }).click()
	await page.getByText('No message waits').waitFor()
	await page.getByRole('link', { name: 'Archive' }).click()
	await page.getByText('9007199254740993').waitFor()
	await inspect(page, 'queue')
	await page.getByRole('button', { name: '1', exact: true }).click()
	await message.getByRole('button', { name: 'Send again' }).click()
	await page.getByText('Sent again as message 2.').waitFor()
	await page.getByRole('link', { name: 'Messages', exact: true }).click()
	await page.getByRole('button', { name: '2', exact: true }).waitFor()
	await page.getByRole('link', { name: 'All queues' }).click()
	await page.getByRole('link', { name: 'mails', exact: true }).waitFor()
	await inspect(page, 'queues-list')
}

// runSchedule creates a schedule, runs it now, and pauses it.
export async function runSchedule(page, at, inspect) {
	await page.goto(at('schedules'))
	await page.getByRole('button', { name: 'Create schedule' }).first().click()
	const form = page.getByRole('dialog', { name: 'New schedule' })
	await form.getByLabel('Name').fill('<b>nightly</b>/x')
	await form.getByLabel('SQL', { exact: true }).fill('select 1')
	await form.getByText('In words: every day at 03:00.').waitFor()
	await inspect(page, 'schedule-new')
	await form.getByRole('button', { name: 'Create schedule' }).click()
	await page.getByRole('heading', { name: '<b>nightly</b>/x' }).waitFor()
	await page.getByRole('button', { name: 'Run now' }).click()
	await page.getByText('succeeded').first().waitFor()
	await inspect(page, 'schedule')
	await page.getByRole('button', { name: 'Pause' }).click()
	await page.getByRole('button', { name: 'Resume' }).waitFor()
	await page.getByRole('link', { name: 'All schedules' }).click()
	await page.getByRole('link', { name: '<b>nightly</b>/x' }).waitFor()
	await inspect(page, 'schedules-list')
}
