-- +goose Up

-- Projects whose SQL leaves work for the server: those where a killed server may have left some.
create table platform.outbox_projects (
	project_uuid uuid primary key references platform.projects (uuid) on delete cascade,
	found_at timestamptz not null
);
comment on column platform.outbox_projects.found_at is 'last work, exact to an hour';
