-- +goose Up
-- +goose StatementBegin

-- From migration 20, with the extensions that projects may install: those of package schema.
create or replace function socle.refuse_extensions() returns event_trigger
language plpgsql set search_path = pg_catalog, pg_temp as $_$
declare
	allowed constant text := 'autoinc, btree_gin, btree_gist, citext, cube, dict_int, dict_xsyn, earthdistance, fuzzystrmatch, hstore, '
		'insert_username, intagg, intarray, isn, ltree, moddatetime, pg_trgm, pgcrypto, postgis, seg, tablefunc, tcn, tsm_system_rows, '
		'tsm_system_time, unaccent, uuid-ossp, vector';
	refused text;
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

	if tg_tag <> 'CREATE EXTENSION' then
		raise insufficient_privilege using message = 'extensions are installed by the platform';
	end if;

	-- Words of the message only: the text may name others.
	select w.name into refused
	from regexp_matches(coalesce(current_query(), '') collate "C",
		'\mcreate\s+extension\s+(?:if\s+not\s+exists\s+)?("[^"]+"|[a-z_][a-z0-9_]*)', 'gi') m,
		lateral (select case when m[1] like '"%' then btrim(m[1], '"') else lower(m[1] collate "C") end) w (name)
	where w.name <> all (string_to_array(allowed, ', ')) and not exists (select from pg_extension e where e.extname = w.name) limit 1;
	if refused is not null then
		raise insufficient_privilege using message = format('%s is not an extension that projects may install', left(refused, 63)),
			hint = 'These are ' || allowed || '.';
	end if;
	raise insufficient_privilege using message = 'extensions are installed by the platform',
		hint = 'CREATE EXTENSION IF NOT EXISTS installs one as a statement of its own, and so does POST /extensions.';
end $_$;
-- +goose StatementEnd
