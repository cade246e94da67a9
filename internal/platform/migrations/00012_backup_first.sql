-- +goose Up
-- Backups that are made before something is destroyed.

alter table platform.projects add column backup_before_destructive boolean not null default false;
comment on column platform.projects.backup_before_destructive is 'whether nothing of the project is destroyed before a backup of it is completed';

alter table platform.backups add column made_before text;
comment on column platform.backups.made_before is 'the operation that waited for it; such a backup is kept for a while whatever the schedule says';

create table platform.awaited_backups (
	project_uuid uuid not null constraint awaited_backups_project references platform.projects on delete cascade,
	request bytea not null,
	operation text not null,
	backup_uuid uuid constraint awaited_backups_backup references platform.backups on delete cascade,
	primary key (project_uuid, request)
);
comment on table platform.awaited_backups is 'requests that wait for a backup, those that have given up and may come back included';
comment on column platform.awaited_backups.request is 'hash of who asks for what';
comment on column platform.awaited_backups.backup_uuid is 'begun after the request came; null: the next one that is made';
create index awaited_backups_by_backup on platform.awaited_backups (backup_uuid);
