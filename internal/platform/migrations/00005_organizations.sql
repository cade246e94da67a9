-- +goose Up
-- Organizations that people share: who is invited, what an administrator has set, and the two things that can't
-- happen whoever tries, at once or one after the other: an organization without an owner, an instance without an administrator.

-- +goose StatementBegin
create function platform.keep_an_owner() returns trigger
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
	-- Whoever takes an owner away waits here for those who take another one, and sees what they left.
	perform from platform.organizations where uuid = old.organization_uuid for no key update;
	if found and not exists (select from platform.members where organization_uuid = old.organization_uuid and role = 2) then
		raise exception 'the organization would have no owner'
			using errcode = 'restrict_violation', schema = 'platform', table = 'members', constraint = 'members_last_owner';
	end if;
	return null;
end $$;
-- +goose StatementEnd
create constraint trigger members_last_owner after update or delete on platform.members
	deferrable initially immediate for each row when (old.role = 2) execute function platform.keep_an_owner();

-- +goose StatementBegin
create function platform.keep_an_administrator() returns trigger
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
	perform from platform.instance for no key update;
	if not exists (select from platform.users where is_administrator and status = 'active') then
		raise exception 'the instance would have no active administrator'
			using errcode = 'restrict_violation', schema = 'platform', table = 'users', constraint = 'users_last_administrator';
	end if;
	return null;
end $$;
-- +goose StatementEnd
create constraint trigger users_last_administrator after delete or update of status, is_administrator on platform.users
	deferrable initially immediate for each row when (old.is_administrator and old.status = 'active')
	execute function platform.keep_an_administrator();
create index users_administrators on platform.users (uuid) where is_administrator;

create table platform.invitations (
	uuid uuid primary key,
	organization_uuid uuid not null constraint invitations_organization references platform.organizations on delete cascade,
	email text not null,
	email_folded text not null,
	role smallint not null constraint invitations_role check (role between 2 and 5),
	created_at timestamptz not null default now(),
	created_by uuid not null,
	sent_at timestamptz not null default now(),
	expires_at timestamptz not null,
	constraint invitations_email_key unique (organization_uuid, email_folded)
);
comment on table platform.invitations is 'who may become a member; the row goes when they do';
create index invitations_expires on platform.invitations (expires_at);

create table platform.settings (
	name text primary key,
	value jsonb not null,
	updated_at timestamptz not null default now(),
	updated_by uuid not null
);
comment on table platform.settings is 'what an administrator has set to another value than the default';
