-- +goose Up
-- The keys by which programs reach a project's files over the S3 protocol.

create table platform.s3_keys (
	uuid uuid primary key,
	project_uuid uuid not null constraint s3_keys_project references platform.projects on delete cascade,
	name text not null,
	created_at timestamptz not null default now(),
	created_by uuid not null
);
comment on column platform.s3_keys.uuid is 'also the access key; the secret key is derived from it and the secret of the install, and kept nowhere';
create unique index s3_keys_name_key on platform.s3_keys (project_uuid, lower(name));
