-- +goose Up
-- Containers and files. The bytes of a file lie outside the database, in a blob of their own.

create table storage.containers (
	uuid uuid primary key,
	name text collate "C" not null constraint containers_name_key unique,
	description text not null default '',
	is_public boolean not null default false,
	max_file_size bigint not null constraint containers_max_file_size check (max_file_size >= 1),
	created_at timestamptz not null default now(),
	created_by uuid not null,
	updated_at timestamptz not null default now(),
	updated_by uuid not null
);
comment on column storage.containers.max_file_size is 'bytes; files that were there before it was lowered stay';
comment on column storage.containers.created_by is 'a user of the platform database';

create table storage.files (
	uuid uuid primary key,
	container_uuid uuid not null constraint files_container references storage.containers on delete cascade,
	full_file_name text collate "C" not null,
	mime_type text collate "C" not null,
	size bigint not null constraint files_size check (size >= 0),
	sha256 bytea not null constraint files_sha256 check (length(sha256) = 32),
	blob_uuid uuid not null constraint files_blob_key unique,
	created_at timestamptz not null default now(),
	created_by uuid not null,
	updated_at timestamptz not null default now(),
	updated_by uuid not null,
	constraint files_full_file_name_key unique (container_uuid, full_file_name)
);
comment on column storage.files.blob_uuid is 'the blob of this project that holds the bytes; never shown';
create index files_created_at on storage.files (container_uuid, created_at, uuid);

create table storage.uploads (
	blob_uuid uuid primary key,
	started_at timestamptz not null default now()
);
comment on table storage.uploads is
	'blobs that may hold bytes of no file: noted before the first byte, struck off by the transaction that makes the file';
create index uploads_started_at on storage.uploads (started_at);
