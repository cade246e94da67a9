-- +goose Up
-- Backups that come from elsewhere, when a backup was last tried, and restores that were gone back on.

alter table platform.backups
	add column origin text not null default 'made' constraint backups_origin check (origin in ('made', 'imported')),
	add column tried_at timestamptz;
comment on column platform.backups.tried_at is 'when it was last restored into a database of its own, whatever came of it';
drop index platform.backups_one_at_a_time;
create unique index backups_one_at_a_time on platform.backups (project_uuid, origin) where status in ('pending', 'running');

alter table platform.restores add column undone_at timestamptz;
comment on column platform.restores.undone_at is 'since when the project is again what it was before; what was restored is what is kept then';
