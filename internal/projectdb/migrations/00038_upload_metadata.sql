-- +goose Up
-- The tus protocol returns the metadata of an upload as its client has sent it.

alter table storage.resumable_uploads add column metadata_header text not null default '' check (length(metadata_header) <= 8192);
comment on column storage.resumable_uploads.metadata_header is 'Upload-Metadata of the request that created the upload';
