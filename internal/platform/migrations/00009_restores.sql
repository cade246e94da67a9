-- +goose Up
-- A backup names the bytes of files that it needs, which backups share; and what was restored from one.

create table platform.backup_contents (
	backup_uuid uuid not null constraint backup_contents_backup references platform.backups on delete cascade,
	project_uuid uuid not null,
	sha256 bytea not null constraint backup_contents_sha256 check (length(sha256) = 32),
	constraint backup_contents_pkey primary key (backup_uuid, sha256)
);
comment on table platform.backup_contents is 'bytes that a backup needs: noted before they are copied, and removed when no backup of the project names them';
create index backup_contents_sha256_key on platform.backup_contents (project_uuid, sha256);

alter table platform.backups
	add column proven_at timestamptz,
	add column proof_error text not null default '';
comment on column platform.backups.proven_at is 'when it was last restored into a database of its own, and found to hold what it should';

create table platform.restores (
	uuid uuid primary key,
	backup_uuid uuid not null,
	backup_project_uuid uuid not null constraint restores_project references platform.projects on delete cascade,
	project_uuid uuid not null,
	target text not null constraint restores_target check (target in ('in_place', 'new')),
	status text not null default 'pending' constraint restores_status check (status in ('pending', 'running', 'completed', 'failed')),
	started_at timestamptz,
	completed_at timestamptz,
	error text not null default '',
	kept_until timestamptz,
	heartbeat_at timestamptz,
	created_at timestamptz not null default now(),
	created_by uuid not null
);
comment on column platform.restores.project_uuid is 'the project that is restored into: the backup''s own, or a new one, which is removed if that fails';
comment on column platform.restores.kept_until is 'until when the database is kept that the restored one took the place of; null if there is none';
create unique index restores_one_at_a_time on platform.restores (project_uuid) where status in ('pending', 'running');
create index restores_running on platform.restores (heartbeat_at) where status = 'running';
create index restores_kept on platform.restores (kept_until) where kept_until is not null;
create index restores_backup on platform.restores (backup_uuid);
