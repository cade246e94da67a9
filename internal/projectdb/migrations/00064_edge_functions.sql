-- +goose Up
-- Edge functions: code of the project that the server runs in processes of its own, see docs/decisions/functions.md. The code is
-- in the database, so a deployment is one transaction, and a backup has what ran.

create table socle.edge_functions (
	name text primary key,
	verify_jwt boolean not null default true,
	sha256 bytea not null,
	created_at timestamptz not null default now(),
	updated_at timestamptz not null default now(),
	constraint edge_functions_name check (name collate "C" ~ '^[A-Za-z0-9][A-Za-z0-9_-]{0,62}$')
);
comment on column socle.edge_functions.sha256 is 'the current version';

create table socle.edge_function_versions (
	function_name text not null references socle.edge_functions (name) on delete cascade,
	sha256 bytea not null,
	code bytea not null,
	deployed_at timestamptz not null default now(),
	primary key (function_name, sha256),
	constraint edge_function_versions_code check (octet_length(code) <= 20971520)
);

create table socle.edge_function_secrets (
	name text primary key,
	sealed bytea not null,
	updated_at timestamptz not null default now(),
	constraint edge_function_secrets_name check (name collate "C" ~ '^[A-Za-z_][A-Za-z0-9_]{0,254}$')
);
comment on column socle.edge_function_secrets.sealed is 'the value, which the server has sealed for this project';

create table socle.edge_function_log (
	id bigint primary key generated always as identity,
	at timestamptz not null,
	function_name text not null,
	stream text not null,
	message text not null
);
create index edge_function_log_function on socle.edge_function_log (function_name, id);
comment on table socle.edge_function_log is 'what functions wrote; no backup has its rows';

alter table socle.edge_functions disable row level security;
alter table socle.edge_function_versions disable row level security;
alter table socle.edge_function_secrets disable row level security;
alter table socle.edge_function_log disable row level security;
