-- +goose Up
alter table storage.resumable_uploads add column concat text collate pg_catalog."C" not null default '';
comment on column storage.resumable_uploads.concat is 'partial, if it becomes part of another upload; final; and the partial ones, as the client named them, if it is made of such; else empty';
