-- +goose Up
-- What a project's rows API shows, and whose tokens it takes beside those of the project's secret.

alter table platform.projects add rest_schemas text[] not null default '{public}'
	constraint projects_rest_schemas check (cardinality(rest_schemas) between 1 and 20);
comment on column platform.projects.rest_schemas is 'schemas that the rows API shows, the default one first';

create table platform.project_jwt_keys (
	uuid uuid primary key,
	project_uuid uuid not null constraint project_jwt_keys_project references platform.projects on delete cascade,
	kid text not null,
	algorithm text not null constraint project_jwt_keys_algorithm check (algorithm in ('ES256', 'RS256')),
	jwk json not null,
	created_at timestamptz not null default now(),
	created_by uuid not null
);
comment on column platform.project_jwt_keys.jwk is 'JSON Web Key, its public members only';
create unique index project_jwt_keys_kid_key on platform.project_jwt_keys (project_uuid, kid);
