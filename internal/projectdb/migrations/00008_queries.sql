-- +goose Up
-- The SQL that developers ran, in their own words.
create table socle.queries (
	uuid uuid primary key,
	query text not null,
	read_only boolean not null,
	run_by uuid not null,
	started_at timestamptz not null default now(),
	duration_ms double precision,
	rows bigint,
	error_code text collate "C"
);
comment on column socle.queries.run_by is 'a user of the platform database';
comment on column socle.queries.duration_ms is 'null while it runs, and for ever if the server died meanwhile';
