-- +goose Up
-- CREATE EXTENSION IF NOT EXISTS of an extension that is installed does nothing in PostgreSQL, so the migrations of other
-- tools contain it. It is allowed if certainly nothing else would run:
--  * The statement is the client's own, not that of a function: nothing but this function is on the stack.
--  * Each occurrence of the word "extension" in the client's text belongs to such a statement, so this is one of them.
--    Collation "C" compares as PostgreSQL's parser does: in Turkish, I is not the capital of i.
--  * pg_get_object_address finds each extension in the newest catalog, whatever the isolation level, and locks it
--    until the transaction ends, so that none is dropped in between.

-- +goose StatementBegin
create or replace function socle.refuse_extensions() returns event_trigger
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
	stack text;
	found text[];
	installed text;
begin
	if pg_has_role(current_user, 'pg_database_owner', 'usage') then
		return;
	end if;

	get diagnostics stack = pg_context;
	if tg_tag = 'CREATE EXTENSION' and strpos(stack, E'\n') = 0 then
		for found in
			select regexp_matches(coalesce(current_query(), 'extension') collate "C",
				'\mextension\M([ \t\r\n\f\v]+if[ \t\r\n\f\v]+not[ \t\r\n\f\v]+exists[ \t\r\n\f\v]+("[^"]+"|[a-z_][a-z0-9_]*)(?=[ \t\r\n\f\v;]|$))?',
				'gi')
		loop
			installed := case when found[2] like '"%' then btrim(found[2], '"') else lower(found[2] collate "C") end;
			if installed is null then
				exit;
			end if;

			begin
				perform pg_get_object_address('extension', array[installed], '{}');
			exception when undefined_object then
				installed := null;
				exit;
			end;
		end loop;

		if installed is not null then
			return;
		end if;
	end if;

	raise insufficient_privilege using message = 'extensions are installed by the platform';
end $$;
-- +goose StatementEnd
