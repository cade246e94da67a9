-- +goose Up
-- What every project database starts with. The platform's schemas belong to the platform; public, and whatever
-- schemas a user makes, belong to the project's owner.

create schema auth;
create schema storage;
create schema forms;
create schema realtime;

revoke all on schema public from public;
grant usage on schema public to anon, authenticated, service_role;

-- Large objects can't be read by a backup's login nor counted by a quota: bytes belong into containers.
revoke execute on function pg_catalog.lo_creat(integer), pg_catalog.lo_create(oid), pg_catalog.lo_from_bytea(oid, bytea) from public;

-- A table is closed until a policy opens it, whichever way it was made.
-- +goose StatementBegin
create function socle.close_new_tables() returns event_trigger
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare made record;
begin
	for made in
		select c.oid, n.nspname, c.relname
		from pg_event_trigger_ddl_commands() d
		join pg_class c on c.oid = d.objid and d.classid = 'pg_class'::regclass
		join pg_namespace n on n.oid = c.relnamespace
		where c.relkind in ('r', 'p') and c.relpersistence <> 't' and not c.relrowsecurity
	loop
		execute format('alter table %I.%I enable row level security', made.nspname, made.relname);
	end loop;
end $$;
-- +goose StatementEnd
create event trigger socle_close_new_tables on ddl_command_end
	when tag in ('CREATE TABLE', 'CREATE TABLE AS', 'SELECT INTO', 'CREATE SCHEMA', 'CREATE EXTENSION')
	execute function socle.close_new_tables();

-- The scripts of trusted extensions run as a superuser. Which ones a project gets is for the platform to say.
-- +goose StatementBegin
create function socle.refuse_extensions() returns event_trigger
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
	if not pg_has_role(current_user, 'pg_database_owner', 'usage') then
		raise insufficient_privilege using message = 'extensions are installed by the platform';
	end if;
end $$;
-- +goose StatementEnd
create event trigger socle_refuse_extensions on ddl_command_start
	when tag in ('CREATE EXTENSION', 'ALTER EXTENSION')
	execute function socle.refuse_extensions();
