-- +goose Up
-- The credentials by which PostgreSQL clients connect to a project's database.

create table platform.database_credentials (
	uuid uuid primary key,
	project_uuid uuid not null constraint database_credentials_project references platform.projects on delete cascade,
	name text not null,
	access text not null constraint database_credentials_access check (access in ('owner', 'read_only')),
	username text not null constraint database_credentials_username_key unique,
	verifier text not null,
	created_at timestamptz not null default now(),
	created_by uuid not null,
	expires_at timestamptz,
	last_used_at timestamptz
);
comment on column platform.database_credentials.username is 'random, since one listener serves all projects';
comment on column platform.database_credentials.verifier is 'SCRAM-SHA-256 of the password, which itself is kept nowhere';
create unique index database_credentials_name_key on platform.database_credentials (project_uuid, lower(name));
