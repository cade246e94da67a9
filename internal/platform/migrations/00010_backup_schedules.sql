-- +goose Up
-- Backups that are made again and again, and what is kept of them.

create table platform.backup_schedules (
	project_uuid uuid primary key constraint backup_schedules_project references platform.projects on delete cascade,
	cron text not null,
	timezone text not null,
	keep_last integer not null constraint backup_schedules_keep_last check (keep_last >= 0),
	keep_daily integer not null constraint backup_schedules_keep_daily check (keep_daily >= 0),
	keep_weekly integer not null constraint backup_schedules_keep_weekly check (keep_weekly >= 0),
	keep_monthly integer not null constraint backup_schedules_keep_monthly check (keep_monthly >= 0),
	prove boolean not null,
	prove_every_days integer not null constraint backup_schedules_prove_every_days check (prove_every_days >= 0),
	next_run_at timestamptz not null,
	created_at timestamptz not null default now(),
	updated_at timestamptz not null default now(),
	updated_by uuid not null
);
comment on column platform.backup_schedules.next_run_at is 'when the next backup is due; moved in the transaction that notes the backup';
comment on column platform.backup_schedules.prove_every_days is 'after how many days the newest backup is proven again; 0: never';
create index backup_schedules_due on platform.backup_schedules (next_run_at);

alter table platform.backups
	add column scheduled boolean not null default false,
	add column bytes_until timestamptz;
comment on column platform.backups.scheduled is 'made because it was due, and removed when the schedule does not keep it';
comment on column platform.backups.bytes_until is 'of one that is being deleted: until when its bytes stay for who is reading them; null: they go at once';
create index backups_completed on platform.backups (project_uuid, completed_at) where status = 'completed';
