-- +goose Up
-- When a project has scheduled work next. Schedules are rows in the project's database; servers read this table only.
create table platform.schedule_times (
	project_uuid uuid primary key constraint schedule_times_project references platform.projects on delete cascade,
	next_run_at timestamptz,
	version bigint not null default 1
);
comment on column platform.schedule_times.next_run_at is 'when a server opens the project; null: it has nothing to do';
comment on column platform.schedule_times.version is 'changes with each look and each change of a schedule: only the last look sets next_run_at';
create index schedule_times_next_run_at_idx on platform.schedule_times (next_run_at) where next_run_at is not null;

-- Projects that exist may have schedules already.
insert into platform.schedule_times (project_uuid, next_run_at) select uuid, now() from platform.projects;

-- A restored database has schedules of its own, and so has the one that an undo brings back.
-- +goose StatementBegin
create function platform.find_restored_schedules() returns trigger
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
	insert into platform.schedule_times as t (project_uuid, next_run_at)
	select p.uuid, now() from platform.projects p where p.uuid = new.project_uuid
	on conflict (project_uuid) do update set next_run_at = now(), version = t.version + 1;
	return new;
end $$;
-- +goose StatementEnd
create trigger find_restored_schedules after update of status, undone_at on platform.restores
	for each row when ((new.status, new.undone_at) is distinct from (old.status, old.undone_at)) execute function platform.find_restored_schedules();
