-- +goose Up
-- The project's own OAuth 2.1 server: its clients, authorization requests and grants.

create table auth.oauth_clients (
	id uuid primary key,
	client_secret_hash bytea,
	registration_type text not null constraint oauth_clients_registration_type check (registration_type in ('manual', 'dynamic')),
	client_type text not null constraint oauth_clients_client_type check (client_type in ('public', 'confidential')),
	token_endpoint_auth_method text not null
		constraint oauth_clients_auth_method check (token_endpoint_auth_method in ('none', 'client_secret_basic', 'client_secret_post')),
	redirect_uris text[] not null,
	grant_types text[] not null,
	client_name text not null default '',
	client_uri text not null default '',
	logo_uri text not null default '',
	created_at timestamptz not null default now(),
	updated_at timestamptz not null default now(),
	constraint oauth_clients_secret check ((client_type = 'confidential') = (client_secret_hash is not null))
);
comment on column auth.oauth_clients.client_secret_hash is 'SHA-256 of a random secret; null of a public client';
create index oauth_clients_created_at on auth.oauth_clients (created_at, id);

create table auth.oauth_authorizations (
	id uuid primary key,
	client_id uuid not null constraint oauth_authorizations_client_id_fkey references auth.oauth_clients on delete cascade,
	user_id uuid constraint oauth_authorizations_user_id_fkey references auth.users on delete cascade,
	redirect_uri text not null,
	scope text not null,
	state text not null default '',
	nonce text not null default '',
	resource text not null default '',
	code_challenge text not null,
	ask boolean not null default false,
	status text not null default 'pending'
		constraint oauth_authorizations_status check (status in ('pending', 'approved', 'denied', 'spent')),
	aal text not null default 'aal1',
	methods jsonb not null default '[]',
	session_id uuid,
	created_at timestamptz not null default now(),
	approved_at timestamptz
);
comment on table auth.oauth_authorizations is 'requests of OAuth clients; the code of an approved one is a MAC of the id, and stored nowhere';
comment on column auth.oauth_authorizations.ask is 'the client wants the user to be asked again';
comment on column auth.oauth_authorizations.methods is 'by which the user who approved was authenticated';
comment on column auth.oauth_authorizations.session_id is 'opened by the code, ended by its second use';
create index oauth_authorizations_created_at on auth.oauth_authorizations (created_at);
create index oauth_authorizations_client_id on auth.oauth_authorizations (client_id);
create index oauth_authorizations_user_id on auth.oauth_authorizations (user_id);

create table auth.oauth_consents (
	user_id uuid constraint oauth_consents_user_id_fkey references auth.users on delete cascade,
	client_id uuid constraint oauth_consents_client_id_fkey references auth.oauth_clients on delete cascade,
	scopes text[] not null,
	granted_at timestamptz not null default now(),
	constraint oauth_consents_pkey primary key (user_id, client_id)
);
create index oauth_consents_client_id on auth.oauth_consents (client_id);

alter table auth.sessions
	add column oauth_client_id uuid constraint sessions_oauth_client_id_fkey references auth.oauth_clients on delete cascade,
	add column scopes text;
comment on column auth.sessions.oauth_client_id is 'OAuth client that has the tokens; null of the application itself';
create index sessions_oauth_client_id on auth.sessions (oauth_client_id) where oauth_client_id is not null;

alter table auth.oauth_clients disable row level security;
alter table auth.oauth_authorizations disable row level security;
alter table auth.oauth_consents disable row level security;
