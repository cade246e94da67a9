-- +goose Up
-- Deleting any number of files: what is gone for users at once, and the bytes that are removed after it.

alter table storage.containers
	add column allowed_mime_types text[] not null default '{}',
	add column deleting boolean not null default false;
comment on column storage.containers.allowed_mime_types is 'such as image/png or image/*; none means all';
comment on column storage.containers.deleting is 'gone for users; its files are being removed';
create index containers_deleting on storage.containers (uuid) where deleting;

create table storage.discarded (
	blob_uuid uuid primary key,
	discarded_at timestamptz not null default now()
);
comment on table storage.discarded is 'blobs whose files were deleted: noted by the transaction that deletes the file, struck off when the bytes are gone';
