-- +goose Up
-- Pictures made smaller, kept so that they are made once. They are nothing of the user's: each can be made again, and they go with the bytes
-- that they were made of.

create table storage.variants (
	blob_uuid uuid primary key,
	source_uuid uuid not null constraint variants_source references storage.files (blob_uuid) on delete cascade,
	spec text collate "C" not null,
	mime_type text collate "C" not null,
	size bigint not null constraint variants_size check (size >= 0),
	sha256 bytea not null constraint variants_sha256 check (length(sha256) = 32),
	created_at timestamptz not null default now(),
	constraint variants_spec_key unique (source_uuid, spec)
);
comment on column storage.variants.source_uuid is 'the blob that it was made of';
comment on column storage.variants.spec is 'what was asked for, in one form';
create index variants_created_at on storage.variants (created_at);

-- +goose StatementBegin
create function storage.variant_deleted() returns trigger
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
	insert into storage.discarded (blob_uuid) values (old.blob_uuid);
	return null;
end $$;

create function storage.bytes_replaced() returns trigger
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
	delete from storage.variants v where v.source_uuid = old.blob_uuid;
	return new;
end $$;
-- +goose StatementEnd
create trigger variant_deleted after delete on storage.variants for each row execute function storage.variant_deleted();
create trigger bytes_replaced before update on storage.files
	for each row when (old.blob_uuid is distinct from new.blob_uuid) execute function storage.bytes_replaced();
