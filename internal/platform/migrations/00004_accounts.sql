-- +goose Up
-- Sessions that are renewed, and links that are sent by mail.

create table platform.links (
	uuid uuid primary key,
	purpose text not null,
	user_uuid uuid constraint links_user references platform.users on delete cascade,
	subject_uuid uuid,
	email text not null,
	created_at timestamptz not null default now(),
	expires_at timestamptz not null,
	used_at timestamptz
);
comment on table platform.links is 'what a link in a mail is good for; its token is computed from the instance''s secret and kept nowhere';
comment on column platform.links.subject_uuid is 'what else it is about, such as an invitation';
comment on column platform.links.email is 'the address that it was sent to';
create index links_user on platform.links (user_uuid);
create index links_subject on platform.links (subject_uuid);
create index links_expires on platform.links (expires_at);

alter table platform.sessions alter column refresh_hash drop not null;
alter table platform.sessions add column generation integer not null default 1;
alter table platform.sessions add column refreshed_at timestamptz not null default now();
alter table platform.sessions add column address text not null default '';
alter table platform.sessions add column user_agent text not null default '';
comment on column platform.sessions.refresh_hash is 'of releases before refresh tokens were taken; read by nobody';
comment on column platform.sessions.generation is 'of the one refresh token that is not spent';
comment on column platform.sessions.address is 'from where it was opened, or renewed last';
