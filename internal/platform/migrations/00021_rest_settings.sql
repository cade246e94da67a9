-- +goose Up
-- Settings of a project's rows API beside its schemas. Zero means no limit.

alter table platform.projects
	add rest_max_rows integer not null default 0 constraint projects_rest_max_rows check (rest_max_rows >= 0),
	add rest_aggregates boolean not null default false,
	add rest_plan boolean not null default false,
	add rest_tx_end text not null default 'commit' constraint projects_rest_tx_end check (
		rest_tx_end in ('commit', 'commit-allow-override', 'rollback', 'rollback-allow-override')),
	add rest_anon_timeout_ms integer not null default 0
		constraint projects_rest_anon_timeout check (rest_anon_timeout_ms between 0 and 30000),
	add rest_authenticated_timeout_ms integer not null default 0
		constraint projects_rest_authenticated_timeout check (rest_authenticated_timeout_ms between 0 and 30000),
	add rest_service_role_timeout_ms integer not null default 0
		constraint projects_rest_service_role_timeout check (rest_service_role_timeout_ms between 0 and 30000);

comment on column platform.projects.rest_max_rows is 'maximum number of rows of a response';
comment on column platform.projects.rest_aggregates is 'whether select may contain aggregates';
comment on column platform.projects.rest_plan is 'whether requests may ask for the plan of their statement';
comment on column platform.projects.rest_tx_end is 'how transactions end, and whether requests may choose';
comment on column platform.projects.rest_anon_timeout_ms is 'statement_timeout of the role anon';
comment on column platform.projects.rest_authenticated_timeout_ms is 'statement_timeout of the role authenticated';
comment on column platform.projects.rest_service_role_timeout_ms is 'statement_timeout of the role service_role';
