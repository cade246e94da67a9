-- +goose Up
-- The log of changes to rows in tables that clients follow. Triggers of the followed tables write it, in the transaction that
-- changes the row. Readers continue from a snapshot: what it does not see is new, whatever commits in which order.

-- Slots of three hours, used in turn. Removing the oldest is TRUNCATE, and no partition is ever missing. The first capture
-- creates them all: a project that nobody follows has no files for them.
create table socle.events (
	slot smallint not null default (floor(date_part('epoch', clock_timestamp()) / 10800)::bigint % 10)::smallint,
	xid xid8 not null default pg_current_xact_id(),
	seq bigint not null,
	at timestamptz not null default clock_timestamp(),
	relation oid not null,
	operation "char" not null,
	record json,
	old json,
	size integer not null default 0, -- bytes of record and old
	oversized boolean not null default false
) partition by list (slot);
-- Order counts within a transaction only, so sessions may cache numbers.
create sequence socle.event_seq cache 32;
alter table socle.events alter column seq set default nextval('socle.event_seq');
create index events_xid_seq on socle.events (xid, seq);
-- Privileges decide alone: the captures insert, nobody reads.
alter table socle.events disable row level security;
comment on table socle.events is 'changes of rows, for a day';

-- The highest transaction whose events were removed. A reader who has not seen all up to there must begin anew.
create table socle.events_removed (
	single boolean primary key default true check (single),
	xid xid8 not null
);

create table socle.captures (
	relation oid primary key,
	since xid8 not null default pg_current_xact_id(), -- the transaction that created the triggers
	followed_at timestamptz not null default now()
);
comment on table socle.captures is 'tables whose changes are captured';

-- +goose StatementBegin
-- small_members returns the members of a row whose text is short: what is left of a row of more than a megabyte.
create function socle.small_members(r json) returns json
language sql immutable set search_path = pg_catalog, pg_temp
return (select json_object_agg(key, value) from json_each(r) where octet_length(value::text) <= 1024);
-- +goose StatementEnd

-- The triggers run as the login of the rows API, which may do least: a cast to json by the project's owner is run.
-- +goose StatementBegin
create function socle.capture_insert() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
	insert into socle.events (relation, operation, record, size, oversized)
	select tg_argv[0]::oid, 'i', case when size > 1048576 then socle.small_members(r) else r end, least(size, 1048576), size > 1048576
	from (select r, octet_length(r::text) as size from (select row_to_json(n.*) as r from new_rows n offset 0) t offset 0) t;
	return null;
end $$;
-- +goose StatementEnd

-- +goose StatementBegin
-- capture_update pairs the rows by their order, which is the same in both tables.
create function socle.capture_update() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
	insert into socle.events (relation, operation, record, old, size, oversized)
	select tg_argv[0]::oid, 'u', case when size > 1048576 then socle.small_members(r) else r end,
		case when size > 1048576 then socle.small_members(o) else o end, least(size, 1048576), size > 1048576
	from (
		select n.r, o.r as o, octet_length(n.r::text) + octet_length(o.r::text) as size
		from (select row_number() over () as i, row_to_json(t.*) as r from new_rows t) n
		join (select row_number() over () as i, row_to_json(t.*) as r from old_rows t) o using (i)
		offset 0
	) t;
	return null;
end $$;
-- +goose StatementEnd

-- +goose StatementBegin
create function socle.capture_delete() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
	insert into socle.events (relation, operation, old, size, oversized)
	select tg_argv[0]::oid, 'd', case when size > 1048576 then socle.small_members(r) else r end, least(size, 1048576), size > 1048576
	from (select r, octet_length(r::text) as size from (select row_to_json(o.*) as r from old_rows o offset 0) t offset 0) t;
	return null;
end $$;
-- +goose StatementEnd

-- +goose StatementBegin
create function socle.capture_truncate() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
	insert into socle.events (relation, operation) values (tg_argv[0]::oid, 't');
	return null;
end $$;
-- +goose StatementEnd

-- +goose StatementBegin
-- capture begins to capture a table and its partitions, unless that is done already. It waits for writers of the table, so
-- no change is missed that commits later. The triggers are internal ones: the owner's tools neither list nor dump them, and
-- DISABLE TRIGGER USER leaves them on.
create function socle.capture(root oid) returns void
language plpgsql set search_path = pg_catalog, pg_temp set session_replication_role = replica set lock_timeout = '300ms' as $$
declare
	t oid;
	kind text;
	created boolean := false;
begin
	if not exists (select from pg_class where oid = root) then
		return;
	end if;
	-- One at a time: others would create the same triggers.
	perform pg_advisory_xact_lock('socle.captures'::regclass::oid::bigint);
	for slot in 0..9 loop
		if to_regclass('socle.events_' || slot) is null then
			execute format('create table socle.events_%1$s partition of socle.events for values in (%1$s)', slot);
		end if;
	end loop;

	for t in select root union select relid::oid from pg_partition_tree(root::regclass) loop
		foreach kind in array array['insert', 'update', 'delete', 'truncate'] loop
			continue when exists (
				select from pg_trigger where tgrelid = t and tgname = 'socle_capture_' || kind and tgenabled = 'O' and tgisinternal);
			execute format('create trigger %I after %s on %s %s for each statement execute function socle.capture_%2$s(%5$L)',
				'socle_capture_' || kind, kind, t::regclass,
				case kind when 'insert' then 'referencing new table as new_rows'
					when 'update' then 'referencing old table as old_rows new table as new_rows'
					when 'delete' then 'referencing old table as old_rows' else '' end, root);
			update pg_trigger set tgisinternal = true where tgrelid = t and tgname = 'socle_capture_' || kind;
			created := true;
		end loop;
	end loop;

	insert into socle.captures as c (relation) values (root)
	on conflict (relation) do update set followed_at = now(), since = case when created then pg_current_xact_id() else c.since end
	where created or c.followed_at < now() - interval '5 minutes';
end $$;
-- +goose StatementEnd

-- +goose StatementBegin
-- release ends the capture of tables that nobody has followed for an interval.
create function socle.release(idle interval) returns void
language plpgsql set search_path = pg_catalog, pg_temp set session_replication_role = replica set lock_timeout = '300ms' as $$
declare
	t record;
begin
	for t in
		select c.relation, g.tgrelid, g.tgname from socle.captures c
		left join pg_trigger g on g.tgname like 'socle\_capture\_%' and g.tgisinternal
			and g.tgrelid in (select c.relation union select relid from pg_partition_tree(c.relation::regclass))
		where c.followed_at < now() - idle
	loop
		if t.tgrelid is not null then
			execute format('drop trigger %I on %s', t.tgname, t.tgrelid::regclass);
		end if;
		delete from socle.captures where relation = t.relation;
	end loop;
end $$;
-- +goose StatementEnd

-- +goose StatementBegin
-- remove_events empties the slots that are older than a day, and the oldest ones while the log has more than limit bytes.
create function socle.remove_events(bytes_limit bigint) returns void
language plpgsql set search_path = pg_catalog, pg_temp set lock_timeout = '300ms' as $$
declare
	current_slot constant bigint := floor(date_part('epoch', clock_timestamp()) / 10800)::bigint;
	total bigint := (select sum(pg_total_relation_size(inhrelid)) from pg_inherits where inhparent = 'socle.events'::regclass);
	slot regclass;
	size bigint;
	last xid8;
begin
	-- The slot after the current one is the oldest.
	for age in reverse 9..0 loop
		slot := to_regclass('socle.events_' || ((current_slot - age) % 10)::text);
		size := pg_relation_size(slot);
		continue when coalesce(size, 0) = 0 or (age < 9 and total <= bytes_limit);
		execute format('lock table %s in access exclusive mode', slot);
		execute format('select xid from %s order by xid desc limit 1', slot) into last;
		if last is not null then
			insert into socle.events_removed as r (xid) values (last)
			on conflict (single) do update set xid = greatest(r.xid, excluded.xid);
		end if;
		total := total - pg_total_relation_size(slot);
		execute format('truncate %s', slot);
	end loop;
end $$;
-- +goose StatementEnd

revoke execute on function socle.small_members(json), socle.capture_insert(), socle.capture_update(), socle.capture_delete(),
	socle.capture_truncate(), socle.capture(oid), socle.release(interval), socle.remove_events(bigint) from public;
