-- +goose Up
-- Each change of a file looked for its block in five orders and updated it, in the transaction of the change. Now a change
-- notes itself, and every thousandth one of a container places all of its notes in their blocks at once. Totals stay exact.
-- The previous release does not read the notes: its pages far down a list can be off by them.

alter table storage.containers add column pending_changes bigint not null default 0;
comment on column storage.containers.pending_changes is 'changes of files noted in storage.sorted_pending, roughly';

create table storage.sorted_pending (
	container_uuid uuid not null,
	change smallint not null constraint sorted_pending_change check (change in (-1, 1)),
	full_file_name text collate "C" not null,
	mime_type text collate "C" not null,
	size bigint not null,
	created_at timestamptz not null,
	updated_at timestamptz not null,
	file_uuid uuid not null
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);
comment on table storage.sorted_pending is
	'files that were added to a container (1) or removed from it (-1) and are not counted in storage.sorted_blocks yet';
create index sorted_pending_container on storage.sorted_pending (container_uuid);

-- +goose StatementBegin
create function storage.place_pending(container uuid) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
	placed record;
begin
	-- No change of the container's files is in progress, and all changes of the caller's statement are noted: a block of too
	-- many files counts what it sees.
	perform from storage.containers c where c.uuid = container for no key update;

	-- A file that came and went counts for nothing. Removals come first, since a block of too many files is counted anew.
	for placed in
		with gone as (
			delete from storage.sorted_pending p where p.container_uuid = container returning p.*
		), keys as (
			select k.sort, k.in_text, k.in_number, k.in_time, g.file_uuid, sum(g.change)::integer as change
			from gone g cross join lateral storage.sort_keys(g.full_file_name, g.mime_type, g.size, g.created_at, g.updated_at) k
			group by k.sort, k.in_text, k.in_number, k.in_time, g.file_uuid having sum(g.change) <> 0
		)
		select k.change, array_agg(container) as containers, array_agg(k.sort) as sorts, array_agg(k.in_text) as texts,
		       array_agg(k.in_number) as numbers, array_agg(k.in_time) as times, array_agg(k.file_uuid) as files
		from keys k group by k.change order by k.change
	loop
		perform storage.place_keys(placed.containers, placed.sorts, placed.texts, placed.numbers, placed.times, placed.files, placed.change);
	end loop;
	update storage.containers c set pending_changes = 0 where c.uuid = container;
end $$;
comment on function storage.place_pending is 'counts the noted changes of a container in its blocks';

create or replace function storage.files_inserted() returns trigger
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
	changed record;
begin
	insert into storage.sorted_pending (container_uuid, change, full_file_name, mime_type, size, created_at, updated_at, file_uuid)
	select f.container_uuid, 1, f.full_file_name, f.mime_type, f.size, f.created_at, f.updated_at, f.uuid from new_files f;
	-- From here on, changes to a container come one after the other.
	for changed in
		with d as (
			select f.container_uuid, count(*) as files, sum(f.size)::bigint as bytes from new_files f group by f.container_uuid
		), locked as materialized (
			select c.uuid from storage.containers c where c.uuid in (select d.container_uuid from d) order by c.uuid for no key update
		)
		update storage.containers c
		set total_files = c.total_files + d.files, total_size = c.total_size + d.bytes, pending_changes = c.pending_changes + d.files
		from d join locked l on l.uuid = d.container_uuid where c.uuid = d.container_uuid
		returning c.uuid, c.pending_changes, d.files, d.bytes
	loop
		if changed.pending_changes >= 1000 then
			perform storage.place_pending(changed.uuid);
		end if;
		update storage.usage u set files = u.files + changed.files, bytes = u.bytes + changed.bytes;
	end loop;
	return null;
end $$;

create or replace function storage.files_deleted() returns trigger
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
	changed record;
begin
	insert into storage.sorted_pending (container_uuid, change, full_file_name, mime_type, size, created_at, updated_at, file_uuid)
	select f.container_uuid, -1, f.full_file_name, f.mime_type, f.size, f.created_at, f.updated_at, f.uuid
	from old_files f where exists (select from storage.containers c where c.uuid = f.container_uuid);
	for changed in
		with d as (
			select f.container_uuid, count(*) as files, sum(f.size)::bigint as bytes from old_files f group by f.container_uuid
		), locked as materialized (
			select c.uuid from storage.containers c where c.uuid in (select d.container_uuid from d) order by c.uuid for no key update
		)
		update storage.containers c
		set total_files = c.total_files - d.files, total_size = c.total_size - d.bytes, pending_changes = c.pending_changes + d.files
		from d join locked l on l.uuid = d.container_uuid where c.uuid = d.container_uuid
		returning c.uuid, c.pending_changes
	loop
		if changed.pending_changes >= 1000 then
			perform storage.place_pending(changed.uuid);
		end if;
	end loop;
	-- Of a deleted container too, which has no row any more.
	perform storage.count_project(-count(*), -sum(size)::bigint) from old_files having count(*) > 0;
	return null;
end $$;

create or replace function storage.files_updated() returns trigger
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
	changed record;
begin
	insert into storage.sorted_pending (container_uuid, change, full_file_name, mime_type, size, created_at, updated_at, file_uuid)
	select m.container_uuid, m.change, m.full_file_name, m.mime_type, m.size, m.created_at, m.updated_at, m.uuid
	from (
		select -1 as change, gone.* from (
			select o.container_uuid, o.full_file_name, o.mime_type, o.size, o.created_at, o.updated_at, o.uuid from old_files o
			except select n.container_uuid, n.full_file_name, n.mime_type, n.size, n.created_at, n.updated_at, n.uuid from new_files n
		) gone
		union all
		select 1, come.* from (
			select n.container_uuid, n.full_file_name, n.mime_type, n.size, n.created_at, n.updated_at, n.uuid from new_files n
			except select o.container_uuid, o.full_file_name, o.mime_type, o.size, o.created_at, o.updated_at, o.uuid from old_files o
		) come
	) m;
	for changed in
		with d as (
			select c.container_uuid, sum(c.files)::bigint as files, sum(c.bytes)::bigint as bytes, count(*) as changes
			from (select container_uuid, -1 as files, -size as bytes from old_files union all select container_uuid, 1, size from new_files) c
			group by c.container_uuid
		), locked as materialized (
			select c.uuid from storage.containers c where c.uuid in (select d.container_uuid from d) order by c.uuid for no key update
		)
		update storage.containers c
		set total_files = c.total_files + d.files, total_size = c.total_size + d.bytes, pending_changes = c.pending_changes + d.changes
		from d join locked l on l.uuid = d.container_uuid where c.uuid = d.container_uuid
		returning c.uuid, c.pending_changes
	loop
		if changed.pending_changes >= 1000 then
			perform storage.place_pending(changed.uuid);
		end if;
	end loop;
	perform storage.count_project(0, sum(d.bytes)::bigint)
	from (select -size as bytes from old_files union all select size from new_files) d having sum(d.bytes) <> 0;
	return null;
end $$;

create function storage.check_quota(default_files bigint, default_bytes bigint) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
	u storage.usage;
begin
	select * into u from storage.usage;
	if u.files > coalesce(u.max_files, default_files) then
		raise check_violation using constraint = 'usage_files_quota', message = 'too many files';
	elsif u.bytes > coalesce(u.max_bytes, default_bytes) then
		raise check_violation using constraint = 'usage_bytes_quota', message = 'too many bytes';
	end if;
end $$;
comment on function storage.check_quota is
	'fails if the project''s files exceed its quota; the transaction has added one, so that no other can before it ends';
-- +goose StatementEnd
