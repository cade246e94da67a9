-- +goose Up
-- Resumable uploads of applications: what the object will have beside its bytes, and who uploads it.

alter table storage.resumable_uploads
	add column application boolean not null default false,
	add column upsert boolean not null default false,
	add column owner_id text,
	add column cache_control text,
	add column user_metadata jsonb;
comment on column storage.resumable_uploads.application is 'begun by an application, about whose uploads policies decide';
