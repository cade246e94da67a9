-- +goose Up
-- Multipart uploads of the S3 protocol. Parts have numbers in place of offsets, arrive in any order, and can be replaced.

create table storage.multipart_uploads (
	uuid uuid primary key,
	container_uuid uuid not null constraint multipart_uploads_container references storage.containers on delete cascade,
	full_file_name text collate "C" not null,
	mime_type text collate "C" not null,
	cache_control text,
	user_metadata jsonb,
	size bigint not null default 0 constraint multipart_uploads_size check (size >= 0),
	file_uuid uuid,
	created_at timestamptz not null default now(),
	expires_at timestamptz not null
);
comment on table storage.multipart_uploads is 'objects that arrive in numbered parts, each a blob of its own';
comment on column storage.multipart_uploads.size is 'bytes of all parts, which count toward the quota';
comment on column storage.multipart_uploads.file_uuid is 'the file that came of it; it may be gone by now';
create index multipart_uploads_container on storage.multipart_uploads (container_uuid);
create index multipart_uploads_expires_at on storage.multipart_uploads (expires_at);

create table storage.multipart_parts (
	blob_uuid uuid primary key,
	upload_uuid uuid not null constraint multipart_parts_upload references storage.multipart_uploads on delete cascade,
	number integer not null constraint multipart_parts_number check (number between 1 and 10000),
	size bigint not null constraint multipart_parts_size check (size >= 0),
	sha256 bytea not null,
	created_at timestamptz not null default now(),
	constraint multipart_parts_number_key unique (upload_uuid, number)
);
create trigger parts_deleted after delete on storage.multipart_parts referencing old table as old_parts
	for each statement execute function storage.parts_deleted();
