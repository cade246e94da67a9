-- +goose Up
-- Reading the catalogue version took PostgreSQL a quarter of a short request. A sequence is read in a microsecond, but changes
-- before the commit: an equal value means that no change has begun since, and those before are over once no older transaction runs.
-- The values are random, so that two databases, of which one takes the other's place, have different ones.

create sequence socle.catalogue_changes;
comment on sequence socle.catalogue_changes is 'set to a random value by each transaction that changes the catalogue version, at once';
select setval('socle.catalogue_changes', 1 + (hashtextextended(gen_random_uuid()::text, 0) & 1099511627775));

-- +goose StatementBegin
create or replace function socle.change_catalogue_version() returns event_trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
	-- Temporary objects are in nobody's catalogue. DROP has no objects at its end: sql_drop has them.
	if tg_event = 'sql_drop' then
		if not exists (select from pg_event_trigger_dropped_objects() where not is_temporary) then
			return;
		end if;
	elsif tg_tag = 'REFRESH MATERIALIZED VIEW'
		or not exists (select from pg_event_trigger_ddl_commands() where schema_name is distinct from 'pg_temp') then
		return;
	end if;

	insert into socle.catalogue_version (n, xact)
	values (1 + (hashtextextended(gen_random_uuid()::text, 0) & 1099511627775), pg_current_xact_id())
	on conflict (xact) do nothing;
	if found then
		perform setval('socle.catalogue_changes', 1 + (hashtextextended(gen_random_uuid()::text, 0) & 1099511627775));
	end if;
end $$;
-- +goose StatementEnd
