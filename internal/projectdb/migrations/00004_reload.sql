-- +goose Up
-- Whoever keeps a catalogue of the database is told when it changes, on the channel that clients of the rows API know.

-- +goose StatementBegin
create function socle.tell_of_change() returns event_trigger
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
	perform pg_notify('pgrst', 'reload schema');
end $$;
-- +goose StatementEnd
create event trigger socle_tell_of_change on ddl_command_end
	when tag in ('CREATE TABLE', 'CREATE TABLE AS', 'SELECT INTO', 'ALTER TABLE', 'CREATE FOREIGN TABLE', 'ALTER FOREIGN TABLE', 'CREATE VIEW', 'ALTER VIEW',
		'CREATE MATERIALIZED VIEW', 'ALTER MATERIALIZED VIEW', 'CREATE FUNCTION', 'ALTER FUNCTION', 'CREATE PROCEDURE', 'ALTER PROCEDURE', 'CREATE AGGREGATE',
		'CREATE TYPE', 'ALTER TYPE', 'CREATE DOMAIN', 'ALTER DOMAIN', 'CREATE CAST', 'CREATE RULE', 'CREATE SCHEMA', 'ALTER SCHEMA', 'CREATE INDEX', 'COMMENT', 'CREATE EXTENSION', 'ALTER EXTENSION')
	execute function socle.tell_of_change();
create event trigger socle_tell_of_drop on sql_drop execute function socle.tell_of_change();
