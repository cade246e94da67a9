-- +goose Up
-- Headers of an upload by the S3 protocol that belong to its bytes, such as Content-Encoding.

alter table storage.objects add column headers jsonb; -- storage.files inherits it
alter table storage.multipart_uploads add column headers jsonb;
comment on column storage.files.headers is 'Content-Disposition, Content-Encoding, Content-Language and Expires of the upload';
