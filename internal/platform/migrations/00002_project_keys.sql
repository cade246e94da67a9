-- +goose Up
-- The keys by which applications reach a project's rows.

create table platform.project_keys (
	uuid uuid primary key,
	project_uuid uuid not null constraint project_keys_project references platform.projects on delete cascade,
	name text not null,
	kind text not null constraint project_keys_kind check (kind in ('publishable', 'secret')),
	hint text not null,
	hash bytea not null constraint project_keys_hash_key unique,
	created_at timestamptz not null default now(),
	created_by uuid not null
);
comment on column platform.project_keys.hint is 'the beginning of the key, by which people tell it from others';
comment on column platform.project_keys.hash is 'SHA-256 of the key, which itself is kept nowhere';
create unique index project_keys_name_key on platform.project_keys (project_uuid, lower(name));
