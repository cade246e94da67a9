-- +goose Up
-- An upload paid most for its triggers: PostgreSQL starts each statement of a function anew. The statement that creates a file
-- now counts it itself and says so by socle.counted, for its transaction. Other changes of files, and those of the previous
-- release, are counted by the triggers as before.

create or replace trigger files_inserted after insert on storage.files referencing new table as new_files
	for each statement when (current_setting('socle.counted', true) is distinct from 'on')
	execute function storage.files_inserted();

-- +goose StatementBegin
create function storage.place_changes() returns trigger
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
	perform storage.place_pending(new.uuid);
	return null;
end $$;
comment on function storage.place_changes is 'places the noted changes of a container, at the end of the statement that noted the last of them';

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
		returning d.files, d.bytes
	loop
		update storage.usage u set files = u.files + changed.files, bytes = u.bytes + changed.bytes;
	end loop;
	return null;
end $$;

create or replace function storage.files_deleted() returns trigger
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
	insert into storage.sorted_pending (container_uuid, change, full_file_name, mime_type, size, created_at, updated_at, file_uuid)
	select f.container_uuid, -1, f.full_file_name, f.mime_type, f.size, f.created_at, f.updated_at, f.uuid
	from old_files f where exists (select from storage.containers c where c.uuid = f.container_uuid);
	with d as (
		select f.container_uuid, count(*) as files, sum(f.size)::bigint as bytes from old_files f group by f.container_uuid
	), locked as materialized (
		select c.uuid from storage.containers c where c.uuid in (select d.container_uuid from d) order by c.uuid for no key update
	)
	update storage.containers c
	set total_files = c.total_files - d.files, total_size = c.total_size - d.bytes, pending_changes = c.pending_changes + d.files
	from d join locked l on l.uuid = d.container_uuid where c.uuid = d.container_uuid;
	-- Of a deleted container too, which has no row any more.
	perform storage.count_project(-count(*), -sum(size)::bigint) from old_files having count(*) > 0;
	return null;
end $$;

create or replace function storage.files_updated() returns trigger
language plpgsql set search_path = pg_catalog, pg_temp as $$
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
	with d as (
		select c.container_uuid, sum(c.files)::bigint as files, sum(c.bytes)::bigint as bytes, count(*) as changes
		from (select container_uuid, -1 as files, -size as bytes from old_files union all select container_uuid, 1, size from new_files) c
		group by c.container_uuid
	), locked as materialized (
		select c.uuid from storage.containers c where c.uuid in (select d.container_uuid from d) order by c.uuid for no key update
	)
	update storage.containers c
	set total_files = c.total_files + d.files, total_size = c.total_size + d.bytes, pending_changes = c.pending_changes + d.changes
	from d join locked l on l.uuid = d.container_uuid where c.uuid = d.container_uuid;
	perform storage.count_project(0, sum(d.bytes)::bigint)
	from (select -size as bytes from old_files union all select size from new_files) d having sum(d.bytes) <> 0;
	return null;
end $$;
-- +goose StatementEnd

create trigger place_changes after update of pending_changes on storage.containers
	for each row when (new.pending_changes >= 1000) execute function storage.place_changes();
revoke execute on function storage.place_changes() from public;

-- As one condition each, PostgreSQL planned that on the key at each call, and ran that on the login as a query.
-- +goose StatementBegin
create or replace function socle.write_audit(new_entry text, new_mac bytea) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp set enable_seqscan = off as $$
declare
	new_key constant text := new_entry::jsonb ->> 'key';
begin
	if session_user not in (current_database() || '_owner', current_database() || '_auth') then
		if not (select rolsuper from pg_roles where rolname = session_user) then
			raise insufficient_privilege using message = 'the audit log is written by the platform';
		end if;
	end if;
	insert into socle.audit_pending (entry, mac, key) values (new_entry, new_mac, new_key);

	-- After the insert: it waits for the transaction that moves an entry with the same key into the chain.
	if new_key is not null then
		if exists (select from socle.audit where entry::jsonb ->> 'key' = new_key) then
			raise unique_violation using constraint = 'audit_pending_key', message = 'the chain has an entry with this key';
		end if;
	end if;
end $$;
-- +goose StatementEnd
