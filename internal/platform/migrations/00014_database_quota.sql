-- +goose Up
-- What a project's database may come to.

alter table platform.projects add column max_database_bytes bigint constraint projects_max_database_bytes check (max_database_bytes >= 0);
comment on column platform.projects.max_database_bytes is 'the project''s own quota; null: that of every project';
