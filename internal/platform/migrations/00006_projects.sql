-- +goose Up
-- Projects are paused, and deleted in a way that can be taken back for a while; and what was asked of each is kept for a time.

alter table platform.projects
	add column deleted_at timestamptz,
	add column closed boolean not null default false,
	drop constraint projects_status,
	add constraint projects_status check (status in ('creating', 'active', 'paused', 'deleted', 'deleting')),
	add constraint projects_deleted_at check (status <> 'deleted' or deleted_at is not null);
comment on column platform.projects.closed is
	'that the database of a paused or deleted project takes no connections; until it is so, whoever comes by makes it so';

-- What is deleted gives its name away.
drop index platform.projects_name_key;
create unique index projects_name_key on platform.projects (organization_uuid, lower(name)) where status not in ('deleted', 'deleting');

create table platform.requests (
	uuid uuid not null,
	project_uuid uuid not null,
	at timestamptz not null,
	method text not null,
	route text not null,
	status smallint not null,
	duration bigint not null,
	caller text not null constraint requests_caller check (caller in ('user', 'key', 'token', 'anonymous')),
	user_uuid uuid,
	key_uuid uuid,
	client inet
) partition by range (at);
comment on table platform.requests is 'requests to projects: no path, query, body or token. Its partitions, one a day, are in a schema of their own, made when they are needed';
comment on column platform.requests.uuid is 'the request''s id, which its answer and the log have too';
comment on column platform.requests.duration is 'microseconds';
create index requests_project on platform.requests (project_uuid, at desc, uuid desc);

create schema platform_requests;
