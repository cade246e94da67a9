-- +goose Up
-- The migrations that developers applied to their own schema. The owner's transaction records its migration, so that
-- neither is committed without the other.
create table socle.applied_migrations (
	version text collate "C" primary key,
	name text not null,
	checksum text collate "C" not null,
	applied_at timestamptz not null default clock_timestamp(),
	applied_by uuid not null,
	duration_ms double precision
);
alter table socle.applied_migrations disable row level security; -- closed by privileges: the owner reads it
comment on column socle.applied_migrations.applied_by is 'a user of the platform database';
comment on column socle.applied_migrations.duration_ms is 'null of a migration without a transaction that has not ended, or failed';

-- +goose StatementBegin
create function socle.record_migration(new_version text, new_name text, new_checksum text, new_applied_by uuid, new_duration_ms double precision)
returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
	if session_user <> current_database() || '_owner' and not (select rolsuper from pg_roles where rolname = session_user) then
		raise insufficient_privilege using message = 'migrations are recorded by the platform';
	end if;

	insert into socle.applied_migrations as m (version, name, checksum, applied_by, duration_ms)
	values (new_version, new_name, new_checksum, new_applied_by, new_duration_ms)
	on conflict (version) do update
	set name = excluded.name, checksum = excluded.checksum, applied_at = excluded.applied_at, applied_by = excluded.applied_by,
		duration_ms = excluded.duration_ms
	where m.duration_ms is null;
	if not found then
		raise unique_violation using message = 'the migration ' || new_version || ' is applied already';
	end if;
end $$;
-- +goose StatementEnd
revoke execute on function socle.record_migration(text, text, text, uuid, double precision) from public;
