-- +goose Up
-- The version of the schema, by which a server sees that the catalogue it keeps is out of date. It is the sum of the rows of a
-- table into which each transaction with DDL inserts one: so it changes when that transaction commits, and no transaction waits
-- for another. The numbers are random, so that two databases, of which one takes the other's place, have different sums.

create table socle.catalogue_version (
	n numeric not null,
	xact xid8
);
alter table socle.catalogue_version disable row level security; -- closed by privileges, which the logins of the rows API get
comment on table socle.catalogue_version is 'sum(n) is the version of the schema; a server that reads the catalogue folds the rows into one';
comment on column socle.catalogue_version.xact is 'the transaction that inserted the row; null of a row that others were folded into';

-- +goose StatementBegin
create function socle.change_catalogue_version() returns event_trigger
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
	select 1 + (hashtextextended(gen_random_uuid()::text, 0) & 1099511627775), pg_current_xact_id()
	where not exists (select from socle.catalogue_version where xact = pg_current_xact_id());
end $$;
-- +goose StatementEnd
create event trigger socle_change_version on ddl_command_end execute function socle.change_catalogue_version();
create event trigger socle_change_version_of_drop on sql_drop execute function socle.change_catalogue_version();

-- A server of the release before listens instead. Nobody else is notified: NOTIFY holds a lock of the whole cluster while it commits.
-- +goose StatementBegin
create or replace function socle.tell_of_change() returns event_trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
	if exists (select from pg_stat_activity where datname = current_database() and query = 'listen pgrst') then
		perform pg_notify('pgrst', 'reload schema');
	end if;
end $$;
-- +goose StatementEnd

insert into socle.catalogue_version (n) values (1 + (hashtextextended(gen_random_uuid()::text, 0) & 1099511627775));
