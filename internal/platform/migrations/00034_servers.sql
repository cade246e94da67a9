-- +goose Up
-- The servers of the install, by which they find each other.

create table platform.servers (
	uuid uuid primary key,
	pid integer not null,
	session_started timestamptz not null,
	address text
);
comment on table platform.servers is 'servers of the install. A row counts as long as its session exists';
comment on column platform.servers.pid is 'PID of the server''s LISTEN session';
comment on column platform.servers.session_started is 'start of that session, since a PID is used again';
comment on column platform.servers.address is 'host:port for messages of other servers; null: it does not listen yet';
