-- +goose Up
-- The sessions of PostgreSQL clients, for the audit entries of those whose server was killed.

create table platform.database_sessions (
	uuid uuid primary key,
	server uuid not null,
	entry jsonb not null,
	opened_at timestamptz not null default now()
);
comment on column platform.database_sessions.server is 'holds an advisory lock while it runs';
comment on column platform.database_sessions.entry is 'audit entry of the end of the session';
