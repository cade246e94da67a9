-- +goose Up
-- What a backup waits for, and what it does not hold.

alter table platform.backups add column waiting_for text not null default '';
comment on column platform.backups.waiting_for is 'in words for the user; empty: nothing';

alter table platform.backups add column warnings text[] not null default '{}';
comment on column platform.backups.warnings is 'what of the project a restore does not bring back, in words for the user';

-- Whoever waits for a backup, on whichever server, is told when one is over.
-- +goose StatementBegin
create function platform.tell_backup_over() returns trigger
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
	perform pg_notify('socle_backup', new.project_uuid::text);
	return null;
end $$;
-- +goose StatementEnd
create trigger tell_backup_over after update of status on platform.backups
	for each row when (new.status in ('completed', 'failed') and new.status <> old.status)
	execute function platform.tell_backup_over();
