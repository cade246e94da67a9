-- +goose Up
-- Reads of a project's rows may go to a standby of PostgreSQL.

alter table platform.projects add column rest_read_replica boolean not null default false;
comment on column platform.projects.rest_read_replica is 'the rows API reads from a standby unless a request prefers the primary';
