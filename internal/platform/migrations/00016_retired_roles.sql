-- +goose Up
-- Logins of removed projects that could not be dropped yet, since objects of other projects name them. They can't log in.

create table platform.retired_roles (
	name text primary key,
	tries integer not null default 0,
	next_try timestamptz not null default now()
);
comment on column platform.retired_roles.next_try is 'the time between tries doubles, up to six hours';
