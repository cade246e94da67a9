-- +goose Up

-- The projects that have webhooks, so that no server searches all databases for them. One server delivers for a project: the
-- one whose lease it is.
create table platform.webhook_projects (
	project_uuid uuid primary key references platform.projects on delete cascade,
	wanted_at timestamptz not null default now(), -- last creation of a webhook
	server uuid,
	leased_until timestamptz not null default '-infinity'
);
comment on table platform.webhook_projects is 'projects with webhooks, and the server that delivers for them';
comment on column platform.webhook_projects.wanted_at is 'when a webhook was last made or resumed; a row without webhooks is removed some time later';
