-- +goose Up
-- Publication supabase_realtime, to which schemas written for Supabase add the tables that clients follow. It belongs to the
-- project's owner. Nothing subscribes to it: there is no replication slot, and wal_level is unchanged.

-- +goose StatementBegin
do $$
begin
	if not exists (select from pg_catalog.pg_publication where pubname = 'supabase_realtime') then
		create publication supabase_realtime;
	end if;
end $$;
-- +goose StatementEnd
