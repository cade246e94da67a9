-- +goose Up
-- A request with an Idempotency-Key belongs to the server that works on it, as long as that server lives.

alter table platform.idempotency add column holder integer;
comment on column platform.idempotency.holder is
	'PID of the database session of the server that works on the request; null if the server did not know it';

alter table platform.projects add column request_key text;
comment on column platform.projects.request_key is
	'hash of the Idempotency-Key of the request that creates the project, for the audit entry of its completion';
