-- +goose Up
-- The platform database: who and where. What belongs to a project lives in the project's own database.

create table platform.instance (
	one boolean primary key default true constraint instance_one check (one),
	administrator_uuid uuid,
	created_at timestamptz not null default now()
);
comment on column platform.instance.administrator_uuid is 'the first user; null until someone claims the instance';
insert into platform.instance default values;

create table platform.signing_keys (
	id text primary key,
	sealed bytea not null,
	created_at timestamptz not null default now(),
	retired_at timestamptz
);
comment on column platform.signing_keys.sealed is 'the private key, encrypted with the secret key of the instance';
create unique index signing_keys_active on platform.signing_keys ((retired_at is null)) where retired_at is null;

create table platform.organizations (
	uuid uuid primary key,
	name text not null,
	created_at timestamptz not null default now(),
	updated_at timestamptz not null default now()
);

create table platform.users (
	uuid uuid primary key,
	username text not null,
	username_folded text not null constraint users_username_key unique,
	email text not null,
	email_folded text not null constraint users_email_key unique,
	password_hash text not null,
	bio text not null default '',
	status text not null default 'active' constraint users_status check (status in ('active', 'suspended')),
	is_administrator boolean not null default false,
	organization_uuid uuid not null constraint users_organization references platform.organizations,
	created_at timestamptz not null default now(),
	updated_at timestamptz not null default now()
);
comment on column platform.users.organization_uuid is 'the organization made with the user';

create table platform.members (
	organization_uuid uuid not null constraint members_organization references platform.organizations on delete cascade,
	user_uuid uuid not null constraint members_user references platform.users on delete cascade,
	role smallint not null constraint members_role check (role between 2 and 5),
	created_at timestamptz not null default now(),
	constraint members_pkey primary key (organization_uuid, user_uuid)
);
comment on column platform.members.role is '2 owner, 3 admin, 4 developer, 5 viewer';
create index members_user on platform.members (user_uuid);

create table platform.sessions (
	uuid uuid primary key,
	user_uuid uuid not null constraint sessions_user references platform.users on delete cascade,
	refresh_hash bytea not null constraint sessions_refresh_key unique,
	created_at timestamptz not null default now(),
	expires_at timestamptz not null
);
comment on table platform.sessions is 'a log-in; without its row no token of the session is worth anything';
create index sessions_user on platform.sessions (user_uuid);
create index sessions_expires on platform.sessions (expires_at);

create table platform.projects (
	uuid uuid primary key,
	organization_uuid uuid not null constraint projects_organization references platform.organizations,
	name text not null,
	description text not null default '',
	status text not null constraint projects_status check (status in ('creating', 'active', 'deleting')),
	schema_version bigint not null default 0,
	created_at timestamptz not null default now(),
	created_by uuid not null,
	updated_at timestamptz not null default now(),
	updated_by uuid not null
);
comment on column platform.projects.schema_version is 'the migration that the project''s database has reached';
create unique index projects_name_key on platform.projects (organization_uuid, lower(name));

create table platform.forms (
	uuid uuid primary key,
	project_uuid uuid not null constraint forms_project references platform.projects on delete cascade
);
comment on table platform.forms is 'where a form lives: requests name a form without naming its project';
create index forms_project on platform.forms (project_uuid);

create table platform.backups (
	uuid uuid primary key,
	project_uuid uuid not null constraint backups_project references platform.projects on delete cascade,
	status text not null default 'pending'
		constraint backups_status check (status in ('pending', 'running', 'completed', 'failed', 'deleting')),
	started_at timestamptz,
	completed_at timestamptz,
	error text not null default '',
	size bigint,
	sha256 bytea,
	heartbeat_at timestamptz,
	created_at timestamptz not null default now(),
	created_by uuid not null
);
comment on column platform.backups.heartbeat_at is 'when the worker that runs it last said so';
create unique index backups_one_at_a_time on platform.backups (project_uuid) where status in ('pending', 'running');
create index backups_running on platform.backups (heartbeat_at) where status = 'running';

create table platform.attempts (
	key bytea primary key,
	count integer not null,
	resets_at timestamptz not null
);
comment on table platform.attempts is 'rate limits shared by all servers of the instance; key is the hash of who tries what';
create index attempts_resets on platform.attempts (resets_at);
