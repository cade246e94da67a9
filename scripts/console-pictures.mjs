// Takes the pictures of docs/console.md: node scripts/console-pictures.mjs BINARY
//
// It fills a project, and opens the screens in Chromium.
import { join } from 'node:path'
import { root, signIn, withConsole } from './console-server.mjs'

const [binary] = process.argv.slice(2)

const sql = `
	create table publishers (id bigint generated always as identity primary key, name text not null, city text);
	create table authors (id bigint generated always as identity primary key, name text not null, born date);
	create type binding as enum ('hardcover', 'paperback', 'e-book');
	create table books (id bigint generated always as identity primary key, title text not null, author_id bigint references authors,
		publisher_id bigint references publishers, price numeric(8,2), binding binding, in_print boolean default true, tags text[], details jsonb);
	create table customers (id bigint generated always as identity primary key, user_id uuid not null default auth.uid(), name text not null, city text);
	create table orders (id bigint generated always as identity primary key, customer_id bigint references customers, ordered_at timestamptz default now(), total numeric(8,2));
	create table order_items (order_id bigint references orders, book_id bigint references books, quantity int not null, primary key (order_id, book_id));
	create table reviews (id bigint generated always as identity primary key, owner uuid not null default auth.uid(), book_id bigint references books, stars int, body text, is_hidden boolean default false);
	create table shelves (id bigint generated always as identity primary key, parent_id bigint references shelves, name text);
	create table settings (name text primary key, value jsonb);
	insert into publishers (name, city) values ('Murray', 'London'), ('Smith Elder', 'London'), ('Egerton', 'London');
	insert into authors (name, born) values ('Jane Austen', '1775-12-16'), ('Charlotte Brontë', '1816-04-21'), ('Mary Shelley', '1797-08-30');
	insert into books (title, author_id, publisher_id, price, binding, tags, details)
		select t || case when n > 1 then ', volume ' || n else '' end, 1 + i % 3, 1 + i % 3, 8.5 + i + n / 4.0, (array['hardcover','paperback','e-book'])[1 + (i + n) % 3]::binding,
			array['novel', case when n % 2 = 0 then 'gift' else 'classic' end], jsonb_build_object('pages', 180 + i * 7 + n, 'language', 'en')
		from unnest(array['Emma', 'Jane Eyre', 'Frankenstein', 'Persuasion', 'Shirley', 'Lodore', 'Northanger Abbey', 'Villette', 'Mathilda']) with ordinality b(t, i),
			generate_series(1, 12) n order by n, i;
	insert into customers (user_id, name, city) select gen_random_uuid(), 'Customer ' || i, (array['Bath','York','Leeds'])[1 + i % 3] from generate_series(1, 40) i;
	insert into orders (customer_id, ordered_at, total) select 1 + i % 40, now() - i * interval '5 hours', 12 + i % 50 from generate_series(1, 200) i;
	alter table reviews enable row level security;
	create policy "visible to all" on reviews for select to anon, authenticated using (not is_hidden);
	create policy "own reviews" on reviews for all to authenticated using (owner = auth.uid());
	grant select on reviews to anon;
	grant select, insert, update, delete on reviews to authenticated;
	insert into reviews (owner, book_id, stars, body) select gen_random_uuid(), i, 1 + i % 5, 'Read it in one night.' from generate_series(1, 30) i;
	analyze`

// fill fills the project, and asks it a few hundred things.
async function fill(call, url, project) {
	await call('POST', '/sql', { read_only: false, query: sql })
	for (const name of ['jane', 'mary', 'charlotte']) {
		await call('POST', `/projects/${project}/end-users`, { email: `${name}@example.com`, password: 'correct horse battery', is_confirmed: true })
	}
	await call('POST', '/containers', { name: 'covers', is_public: true })
	await call('POST', '/backups', {})
	await call('PUT', `/projects/${project}/edge-functions/hello`, { verify_jwt: false,
		code: `Deno.serve(async r => { console.log('said hello'); return Response.json({ hello: (await r.json()).name }) })` })

	const { key } = (await call('POST', `/projects/${project}/keys`, { name: 'web', kind: 'publishable' })).metadata
	for (let i = 0; i < 300; i++) {
		await fetch(`${url}/projects/${project}/rest/v1/${i % 9 === 0 ? 'books' : 'reviews'}?limit=${1 + i % 20}`, { headers: { apikey: key } })
	}
}

await withConsole(binary, { name: 'Book shop', description: 'Books, orders and reviews' }, async ({ url, browser, call, project }) => {
	await fill(call, url, project)
	const page = await browser.newPage({ viewport: { width: 1180, height: 720 }, reducedMotion: 'reduce' })
	await signIn(page, url)

	const reviews = encodeURIComponent('public.reviews')
	for (const [name, path, text, scheme] of [
		['home', '?span=hour', 'Longest 99th percentile'], ['tables', 'tables', 'reviews'], ['rows', `tables/${encodeURIComponent('public.books')}`, 'Emma'],
		['diagram', 'diagram?detail=all', 'shelves', 'dark'], ['access', `tables/${reviews}/structure?tab=access&as=anon`, 'The caller reads 30 rows'],
		['sql', `sql?query=${encodeURIComponent('select city, count(*) as orders, sum(total) as total\nfrom orders join customers on customers.id = customer_id\ngroup by city order by total desc')}`, 'Bath'],
		['users', 'users', 'jane@example.com'], ['edgefunction', 'edge-functions/hello', 'Versions'], ['backups', 'backups', 'proven'],
	]) {
		await page.emulateMedia({ colorScheme: scheme ?? 'light' })
		await page.goto(`${url}/console/projects/${project}/${path}`)
		await page.getByRole('heading', { level: 1 }).first().waitFor()
		if (name === 'sql') await page.getByRole('button', { name: 'Run', exact: true }).click()
		await page.getByText(text).first().waitFor()
		if (name === 'home') await page.locator('canvas').first().waitFor()
		await page.mouse.move(0, 0)
		await page.waitForFunction(() => document.querySelector('[role=status][aria-label=Loading], [aria-busy=true]') === null)
		await page.screenshot({ path: join(root, `docs/console/${name}.png`) })
	}
})
