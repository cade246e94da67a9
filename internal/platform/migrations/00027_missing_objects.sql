-- +goose Up
-- Objects of a backup that PostgreSQL does not create again.

alter table platform.backups add column missing jsonb not null default '[]';
comment on column platform.backups.missing is 'objects that the last proof could not create, with their statements';

alter table platform.restores
	add column missing jsonb not null default '[]',
	add column allow_missing boolean not null default false;
comment on column platform.restores.missing is 'objects that the restore could not create, with their statements';
comment on column platform.restores.allow_missing is 'whether a restore in place goes on without them';
