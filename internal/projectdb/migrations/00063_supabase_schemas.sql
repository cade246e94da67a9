-- +goose Up
-- What schemas written for Supabase refer to: views over buckets, files and schedules, the trigger function of storage for
-- updated_at, steps of schedules beyond their field's range. Functions are changed as they are, since several migrations before
-- have a part in them.

-- +goose StatementBegin
create function storage.update_updated_at_column() returns trigger
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
	new.updated_at := now();
	return new;
end $$;
-- +goose StatementEnd
comment on function storage.update_updated_at_column is 'sets updated_at, for triggers of the project''s own tables';
revoke execute on function storage.update_updated_at_column() from public;

-- +goose StatementBegin
create function socle.replace_in_function(changed regprocedure, old text, new text) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
	definition constant text := pg_get_functiondef(changed);
begin
	if strpos(definition, old) = 0 then
		raise exception 'function % has changed: %', changed, old;
	end if;
	execute replace(definition, old, new);
end $$;

do $$
begin
	perform socle.replace_in_function('socle.refuse_references()', $old$to_regproc('realtime.topic')))$old$,
		$new$to_regproc('realtime.topic'),
						to_regproc('storage.update_updated_at_column')))$new$);
	perform socle.replace_in_function('socle.refuse_references()', $old$
		limit 1;
		if found then
			raise insufficient_privilege using message = referred$old$, $new$
			and not (d.refclassid = 'pg_class'::regclass
				and d.refobjid in (to_regclass('storage.buckets'), to_regclass('storage.objects'), to_regclass('cron.job'))
				and d.classid = 'pg_rewrite'::regclass and exists (
					select from pg_rewrite w where w.oid = d.objid and w.ev_class <> d.refobjid))
		limit 1;
		if found then
			raise insufficient_privilege using message = referred$new$);
end $$;
-- +goose StatementEnd
drop function socle.replace_in_function(regprocedure, text, text);
