-- +goose Up
-- SQL that developers of a project share under a name.
create table socle.saved_queries (
	uuid uuid primary key,
	name text not null unique,
	query text not null,
	created_by uuid not null,
	updated_by uuid not null,
	created_at timestamptz not null default now(),
	updated_at timestamptz not null default now(),
	constraint saved_queries_name check (char_length(name) between 1 and 100),
	constraint saved_queries_query check (char_length(query) between 1 and 50000)
);
comment on column socle.saved_queries.created_by is 'a user of the platform database, as updated_by';

alter table socle.saved_queries disable row level security;
