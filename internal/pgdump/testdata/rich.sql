-- A database with one of everything that pg_dump writes and a project can have.
set check_function_bodies = off;
create schema app;
create schema "Odd ""schema""";
comment on schema app is 'of the application; it''s "quoted"';
create extension citext with schema public;
create extension pg_trgm with schema public;
create extension hstore with schema app;
create extension "uuid-ossp";

create type app.status as enum ('draft', 'in review', 'it''s out');
create type app.pair as (a int, b text);
create type app.span as range (subtype = date);
create domain app.email as citext check (value ~ '^[^;]+@[^;]+$') not null;
create collation app.german (provider = icu, locale = 'de');

create function app.stamp() returns trigger language plpgsql as $body$
begin
	-- a comment; with a semicolon, a 'quote and $$dollars$$
	new.changed := now();
	if new.note = $q$;$q$ then raise exception 'it''s; %', new.note; end if;
	return new;
end $body$;
create function app.total(variadic n numeric[]) returns numeric language sql immutable
	begin atomic; select case when count(*) > 0 then sum(x) end from unnest(n) x; end;
create function app.similar(a text, b text) returns boolean language sql stable as $$ select public.similarity(a, b) > 0.3 $$;
create procedure app.clean() language sql as 'delete from app.books where false; select 1';
create aggregate app.product(numeric) (sfunc = numeric_mul, stype = numeric, initcond = '1');
create operator app.=== (function = texteq, leftarg = text, rightarg = text);

create table app.authors (
	id int generated always as identity (start 10 increment 5) primary key,
	name text collate app.german not null,
	email app.email,
	tags public.citext[] default array['a', 'b;']::public.citext[],
	more app.hstore
);
create table app.books (
	id bigserial primary key,
	author int not null references app.authors on delete cascade deferrable initially deferred,
	title text not null check (title <> ';'),
	words int default 0,
	size int generated always as (words * 6) stored,
	status app.status default 'draft',
	pair app.pair,
	during app.span,
	note text,
	raw bytea,
	doc jsonb,
	ident uuid default public.uuid_generate_v4(),
	changed timestamptz,
	exclude using gist (during with &&)
);
create index books_title on app.books using gin (title public.gin_trgm_ops) where (status <> 'draft');
create unique index on app.books (lower(title), author desc nulls last) include (words);
create statistics app.books_stats on author, status from app.books;
create trigger stamp before insert or update of note on app.books for each row when (new.note is distinct from 'x;') execute function app.stamp();
create rule no_delete as on delete to app.authors where old.id < 0 do instead nothing;
comment on table app.books is 'Line one;
line two -- not a comment';
comment on column app.books.title is E'tab\t\\ backslash';
comment on constraint books_title_check on app.books is 'x';

create table app.events (id int, at date not null, what text) partition by range (at);
create table app.events_2025 partition of app.events for values from ('2025-01-01') to ('2026-01-01');
create table app.events_rest partition of app.events default;
create index on app.events (at);
create table public.places (id int primary key, name text);
create table public.cities (mayor text) inherits (public.places);
create table "Odd ""schema"""."odd; table" ("a ""b""; c" text, "select" int);
create unlogged table public.cache (k text primary key, v text);

create view app.drafts with (security_invoker = true) as select id, title, author from app.books where status = 'draft' with local check option;
create materialized view app.counts as select author, count(*) as n from app.books group by 1;
create unique index on app.counts (author);

alter table app.books enable row level security;
alter table app.books force row level security;
create policy readers on app.books for select to anon, authenticated using (status = 'it''s out');
create policy own on app.authors as restrictive for all to authenticated using (email = current_setting('x.y', true)) with check (true);
grant select on app.books to anon;
grant usage on schema app to anon;
grant execute on function app.total(numeric[]) to authenticated;
alter table public.places replica identity full;
alter table public.places cluster on places_pkey;
create sequence public.tickets increment by 7 cache 3 cycle minvalue 1 maxvalue 1000;

insert into app.authors (name, email, more) select 'Author ' || i, 'a' || i || '@example.com', 'k=>"v;"' from generate_series(1, 200) i;
insert into app.authors (name, email) values (E'tab\t newline\n return\r backslash \\ \\. \\N end', 'x@y');
begin;
insert into app.books (author, title, words, status, pair, during, note, raw, doc)
select (select id from app.authors order by id limit 1 offset i % 200), 'Title ' || i, i, (enum_range(null::app.status))[1 + i % 3],
	row(i, 'x,"y"\')::app.pair, app.span(date '2000-01-01' + i, date '2000-01-02' + i), case when i % 2 = 0 then E'\\.\n' || i end,
	decode(md5(i::text), 'hex'), jsonb_build_object('i', i, 't', E'\n\\"')
from generate_series(1, 600) i;
commit;
insert into app.events select i, date '2025-06-01' + i, E'what\\.' from generate_series(1, 500) i;
insert into public.cities select i, 'City ' || i, 'Mayor' from generate_series(1, 10) i;
insert into "Odd ""schema"""."odd; table" values ('\.', 1), (null, null), ('', 2), (E'\\.\n\\.', 3);
select nextval('public.tickets');
refresh materialized view app.counts;
