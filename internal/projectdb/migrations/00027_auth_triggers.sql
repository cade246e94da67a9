-- +goose Up
-- CREATE TRIGGER on auth.users needs a privilege, DROP TRIGGER and COMMENT ON TRIGGER its owner. For the time of such a statement the
-- table belongs to the project's owner. Neither statement runs user code, so nothing else happens meanwhile. A table that always
-- belonged to the project's owner would show it all hashes: event triggers refuse ALTER TABLE only after its expressions have run.

-- +goose StatementBegin
create or replace function socle.refuse_auth_ddl() returns event_trigger
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
	if (select oid from pg_roles where rolname = current_user and not rolsuper)
		= (select relowner from pg_class where oid = to_regclass('auth.identities')) then
		raise insufficient_privilege using message = 'code that runs as the login of end users cannot change the schema';
	end if;
end $$;

create function socle.lend_users() returns event_trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
	users constant oid := to_regclass('auth.users');
begin
	-- Only the text says which table the statement is about. The statement takes the same lock.
	if current_query() ~* '\m(drop|comment\s+on)\s+trigger\M[^;]*\mon\s+"?auth"?\s*\.\s*"?users\M'
		and has_table_privilege(session_user, users, 'trigger')
		and not (select rolsuper from pg_authid where rolname = session_user) then
		lock table auth.users in access exclusive mode;
		update pg_class set relowner = (select oid from pg_authid where rolname = session_user) where oid = users;
	end if;
end $$;
comment on function socle.lend_users is 'gives auth.users to the project''s owner, at the start of a statement on its triggers';

create function socle.return_users() returns event_trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
	login constant oid := (select relowner from pg_class where oid = to_regclass('auth.identities'));
begin
	update pg_class set relowner = login where oid = to_regclass('auth.users') and relowner <> login;
	if found and exists (
		select from pg_event_trigger_ddl_commands() d where d.schema_name = 'auth' and d.classid <> 'pg_trigger'::regclass) then
		raise insufficient_privilege using message = 'auth.users belongs to the platform: only its triggers can be changed';
	end if;
end $$;
comment on function socle.return_users is 'takes auth.users back, at the end of the statement';
-- +goose StatementEnd
revoke execute on function socle.lend_users(), socle.return_users() from public;
create event trigger socle_lend_users on ddl_command_start when tag in ('DROP TRIGGER', 'COMMENT')
	execute function socle.lend_users();
create event trigger socle_return_users on ddl_command_end when tag in ('DROP TRIGGER', 'COMMENT')
	execute function socle.return_users();
