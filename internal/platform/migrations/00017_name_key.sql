-- +goose Up
-- The names of databases and logins, which every project can read, hide the UUIDs of projects. An install that has users keeps
-- the names that its projects have.

alter table platform.instance add column name_key bytea constraint instance_name_key check (octet_length(name_key) = 16);
comment on column platform.instance.name_key is 'AES key that names of databases are encrypted under; null: they are the UUIDs of the projects';
update platform.instance set name_key = uuid_send(gen_random_uuid()) where not exists (select from platform.users);
