-- +goose Up
-- Facts of the platform on the log of changes, beside the changes of rows: relation is 0, operation is f, and record has the data.
alter table socle.events
	add column type text collate "C", -- null: a change of a row
	add column id uuid; -- null: derived from xid and seq

create table socle.webhooks (
	id uuid primary key default gen_random_uuid(),
	name text not null constraint webhooks_name_key unique,
	url text not null,
	types text[] not null default '{}',
	tables jsonb not null default '[]', -- objects with schema, table, event and filter
	secrets bytea not null, -- signing secrets and headers, sealed under a key of the project
	ordered boolean not null default false,
	paused boolean not null default false,
	pause_reason text not null default '' check (pause_reason in ('', 'member', 'failures', 'restore')),
	paused_at timestamptz,
	created_at timestamptz not null default now(),
	updated_at timestamptz not null default now(),
	check (paused = (paused_at is not null) and paused = (pause_reason <> ''))
);
alter table socle.webhooks disable row level security;
comment on table socle.webhooks is 'endpoints that are told of changes';

-- Not in backups, like the log that it is about. A webhook without a row begins at the present.
create table socle.webhook_states (
	webhook uuid primary key references socle.webhooks on delete cascade,
	cursor text not null, -- events before it have a delivery
	cursor_at timestamptz not null default now(),
	removed xid8, -- what the log had lost when the cursor was last placed at the present
	captured xid8 not null, -- transaction from which on all of its tables were captured when it was made or resumed
	failing_since timestamptz, -- first failure after the last success
	dead integer not null default 0 -- deliveries given up since the last success
);
alter table socle.webhook_states disable row level security;

create table socle.webhook_deliveries (
	seq bigint generated always as identity primary key,
	id uuid not null default gen_random_uuid() unique,
	webhook uuid not null references socle.webhooks on delete cascade,
	event uuid not null,
	type text not null collate "C",
	body text not null,
	size integer not null, -- bytes of body
	status text not null default 'pending' check (status in ('pending', 'delivered', 'dead')),
	attempts integer not null default 0, -- since the delivery was created, retried or replayed
	next_at timestamptz not null default now(),
	created_at timestamptz not null default now(),
	ended_at timestamptz,
	log jsonb not null default '[]', -- attempts: at, milliseconds, status, error
	reply text not null default '', -- the last one's beginning
	constraint webhook_deliveries_event_key unique (webhook, event)
);
alter table socle.webhook_deliveries disable row level security;
create index webhook_deliveries_pending on socle.webhook_deliveries (webhook, seq) include (size, next_at) where status = 'pending';
create index webhook_deliveries_listed on socle.webhook_deliveries (webhook, seq);
comment on table socle.webhook_deliveries is 'events for a webhook: some days of them, and at most as many as package webhook keeps';

-- +goose StatementBegin
-- listening reports whether a webhook needs its events now, or can still go on from its cursor after a pause.
create function socle.listening(w socle.webhooks) returns boolean
language sql stable set search_path = pg_catalog, pg_temp
return not w.paused or (w.pause_reason <> 'restore' and w.paused_at > now() - interval '1 day');
-- +goose StatementEnd

-- +goose StatementBegin
-- create_event_slots creates the partitions of the log, which a project has from its first capture on.
create function socle.create_event_slots() returns void
language plpgsql set search_path = pg_catalog, pg_temp set session_replication_role = replica as $$
begin
	-- One at a time: others would create the same tables and triggers.
	perform pg_advisory_xact_lock('socle.captures'::regclass::oid::bigint);
	for slot in 0..9 loop
		if to_regclass('socle.events_' || slot) is null then
			execute format('create table socle.events_%1$s partition of socle.events for values in (%1$s)', slot);
		end if;
	end loop;
end $$;
-- +goose StatementEnd

-- +goose StatementBegin
-- write_fact writes a fact into the log. A large one keeps the members that are small.
create function socle.write_fact(type text, data json) returns void
language sql set search_path = pg_catalog, pg_temp as $$
	insert into socle.events (relation, operation, type, record, size, oversized)
	select 0, 'f', type, case when n > 1048576 then socle.small_members(data) else data end, least(n, 1048576), n > 1048576
	from (select octet_length(data::text) as n) t;
$$;
-- +goose StatementEnd

-- The triggers of facts exist only while a webhook listens, see socle.listen: an upload or a log-in that nobody wants to know
-- of costs nothing. They see changes by whatever way they come, SQL of the project's owner among them. They read columns of
-- built-in types only, so no cast of the owner's runs.
-- +goose StatementBegin
create function socle.file_fact() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
	f record;
	data jsonb;
begin
	if tg_op = 'DELETE' then f := old; else f := new; end if;
	data := jsonb_build_object('id', f.uuid, 'container', f.container_uuid, 'bucket', f.bucket_id, 'name', f.full_file_name,
		'mime_type', f.mime_type, 'size', f.size, 'sha256', encode(f.sha256, 'hex'), 'owner', f.owner_id);
	if tg_argv[0] = 'socle.file.moved.v1' then
		data := data || jsonb_build_object('old', jsonb_build_object('container', old.container_uuid, 'bucket', old.bucket_id,
			'name', old.full_file_name));
	end if;
	perform socle.write_fact(tg_argv[0], data::json);
	return null;
end $$;
-- +goose StatementEnd

-- +goose StatementBegin
create function socle.response_fact() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
	perform socle.write_fact(tg_argv[0], json_build_object('id', new.uuid, 'form', new.form_uuid, 'submitted_at', new.submitted_at,
		'answers', new.answers));
	return null;
end $$;
-- +goose StatementEnd

-- +goose StatementBegin
create function socle.user_fact() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
	u record;
begin
	if tg_op = 'DELETE' then u := old; else u := new; end if;
	perform socle.write_fact(tg_argv[0], json_build_object('id', u.id, 'email', nullif(u.email, ''), 'phone', nullif(u.phone, ''),
		'is_anonymous', u.is_anonymous, 'created_at', u.created_at));
	return null;
end $$;
-- +goose StatementEnd

-- +goose StatementBegin
create function socle.session_fact() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
	perform socle.write_fact(tg_argv[0], json_build_object('id', new.user_id, 'session', new.id, 'client', new.oauth_client_id));
	return null;
end $$;
-- +goose StatementEnd

-- +goose StatementBegin
create function socle.migration_fact() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
	perform socle.write_fact(tg_argv[0], json_build_object('version', new.version, 'name', new.name, 'applied_at', new.applied_at,
		'applied_by', new.applied_by));
	return null;
end $$;
-- +goose StatementEnd

-- Where facts come from, for socle.listen. Several triggers can tell of one type.
create view socle.fact_triggers as
select * from (values
	('socle.file.stored.v1', 'file_stored', 'storage.files', 'insert', 'true', 'file_fact'),
	('socle.file.stored.v1', 'file_replaced', 'storage.files', 'update', 'old.blob_uuid <> new.blob_uuid', 'file_fact'),
	('socle.file.moved.v1', 'file_moved', 'storage.files', 'update',
		'old.full_file_name <> new.full_file_name or old.container_uuid <> new.container_uuid', 'file_fact'),
	('socle.file.deleted.v1', 'file_deleted', 'storage.files', 'delete', 'true', 'file_fact'),
	('socle.form.submitted.v1', 'form_submitted', 'forms.responses', 'insert', 'new.state = ''complete''', 'response_fact'),
	('socle.form.submitted.v1', 'form_completed', 'forms.responses', 'update',
		'old.state <> ''complete'' and new.state = ''complete''', 'response_fact'),
	('socle.user.created.v1', 'user_created', 'auth.users', 'insert', 'true', 'user_fact'),
	('socle.user.deleted.v1', 'user_deleted', 'auth.users', 'delete', 'old.deleted_at is null', 'user_fact'),
	('socle.user.deleted.v1', 'user_hidden', 'auth.users', 'update', 'old.deleted_at is null and new.deleted_at is not null', 'user_fact'),
	('socle.user.signed_in.v1', 'user_signed_in', 'auth.sessions', 'insert', 'true', 'session_fact'),
	('socle.migration.applied.v1', 'migration_applied', 'socle.applied_migrations', 'insert', 'new.duration_ms is not null', 'migration_fact'),
	('socle.migration.applied.v1', 'migration_ended', 'socle.applied_migrations', 'update',
		'old.duration_ms is null and new.duration_ms is not null', 'migration_fact')
) t (type, name, "table", event, condition, function);

-- +goose StatementBegin
-- listen creates the triggers of the facts that webhooks name, and drops the others if unneeded. Like those of captures they
-- are internal, so no dump has them.
create function socle.listen(drop_unneeded boolean) returns void
language plpgsql set search_path = pg_catalog, pg_temp set session_replication_role = replica set lock_timeout = '300ms' as $$
declare
	t record;
	trigger_name text;
	wanted boolean;
	present boolean;
begin
	perform socle.create_event_slots();
	for t in select * from socle.fact_triggers loop
		trigger_name := 'socle_fact_' || t.name;
		wanted := exists (select from socle.webhooks w where socle.listening(w) and t.type = any(w.types));
		present := exists (select from pg_trigger where tgrelid = t."table"::regclass and tgname = trigger_name and tgenabled = 'O' and tgisinternal);
		if wanted and not present then
			execute format('create trigger %I after %s on %s for each row when (%s) execute function socle.%I(%L)',
				trigger_name, t.event, t."table", t.condition, t.function, t.type);
			update pg_trigger set tgisinternal = true where tgrelid = t."table"::regclass and tgname = trigger_name;
		elsif present and not wanted and drop_unneeded then
			execute format('drop trigger %I on %s', trigger_name, t."table");
		end if;
	end loop;
end $$;
-- +goose StatementEnd

-- +goose StatementBegin
-- release ends the capture of tables that nobody has followed for an interval, and that no webhook names. The lock keeps a
-- capture that begins meanwhile.
create or replace function socle.release(idle interval) returns void
language plpgsql set search_path = pg_catalog, pg_temp set session_replication_role = replica set lock_timeout = '300ms' as $$
declare
	t record;
begin
	perform pg_advisory_xact_lock('socle.captures'::regclass::oid::bigint);
	for t in
		select c.relation, g.tgrelid, g.tgname from socle.captures c
		left join pg_trigger g on g.tgname like 'socle\_capture\_%' and g.tgisinternal
			and g.tgrelid in (select c.relation union select relid from pg_partition_tree(c.relation::regclass))
		where c.followed_at < now() - idle and not exists (
			select from socle.webhooks w, jsonb_array_elements(w.tables) n
			where socle.listening(w) and to_regclass(format('%I.%I', n ->> 'schema', n ->> 'table')) = c.relation)
	loop
		if t.tgrelid is not null then
			execute format('drop trigger %I on %s', t.tgname, t.tgrelid::regclass);
		end if;
		delete from socle.captures where relation = t.relation;
	end loop;
end $$;
-- +goose StatementEnd

revoke all on socle.fact_triggers from public;
revoke execute on function socle.listening(socle.webhooks), socle.create_event_slots(), socle.write_fact(text, json), socle.file_fact(),
	socle.response_fact(), socle.user_fact(), socle.session_fact(), socle.migration_fact(), socle.listen(boolean) from public;
