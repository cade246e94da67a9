-- +goose Up
-- What an administrator sets other than by default, and what functions used, an hour at a time.

create table socle.edge_function_limits (
	singleton boolean primary key default true,
	memory_mb integer,
	cpu_milliseconds integer,
	answer_seconds integer,
	wall_seconds integer,
	concurrency integer,
	body_mb integer,
	processes integer,
	mail_ports boolean,
	constraint edge_function_limits_singleton check (singleton)
);
comment on table socle.edge_function_limits is 'one row at most; null stands for the default';

create table socle.edge_function_metrics (
	function_name text not null,
	hour timestamptz not null,
	calls bigint not null,
	errors bigint not null,
	cold_starts bigint not null,
	cpu_microseconds bigint not null,
	durations bigint[] not null,
	primary key (function_name, hour)
);
comment on table socle.edge_function_metrics is 'what all servers counted; no backup has its rows';
comment on column socle.edge_function_metrics.durations is 'numbers of calls by the time to their answer, in the intervals of package function';

alter table socle.edge_function_limits disable row level security;
alter table socle.edge_function_metrics disable row level security;
