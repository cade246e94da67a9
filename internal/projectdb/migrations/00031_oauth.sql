-- +goose Up
-- Sign-ins with identity providers. One that has begun has no row: its state travels with the browser, sealed.

create table auth.spent_flows (
	id uuid primary key,
	created_at timestamptz not null default now()
);
comment on table auth.spent_flows is 'sign-ins with identity providers that were completed, and links to add an identity that were opened: valid once';
create index spent_flows_created_at on auth.spent_flows (created_at);
alter table auth.spent_flows disable row level security;

alter table auth.flow_state
	add column provider_access_token bytea,
	add column provider_refresh_token bytea;
comment on column auth.flow_state.provider_access_token is 'sealed under a key of the project, until the code is exchanged';
comment on column auth.flow_state.provider_refresh_token is 'like provider_access_token';
