-- +goose Up
alter table platform.members add column accountable boolean not null default true;
comment on column platform.members.accountable is
	'agreed to the role when joining, or acted on it since: a promoted owner did not ask for the projects of others';

-- +goose StatementBegin
-- account_of returns the account that an organization counts to: its accountable owner of longest standing. Further
-- owners change nothing. An organization without one is an account of its own.
create or replace function platform.account_of(organization uuid) returns uuid language sql stable as $$
	select coalesce((
		select m.user_uuid from platform.members m
		where m.organization_uuid = organization and m.role = 2 and m.accountable
		order by m.created_at, m.user_uuid
		limit 1), organization)
$$;
-- +goose StatementEnd
