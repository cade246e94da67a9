-- +goose Up
-- +goose StatementBegin
-- account_of returns the account that an organization counts to: its owner of longest standing. Further owners change
-- nothing, and an organization whose owner has left counts to the next one.
create function platform.account_of(organization uuid) returns uuid language sql stable as $$
	select coalesce((
		select m.user_uuid from platform.members m
		where m.organization_uuid = organization and m.role = 2
		order by m.created_at, m.user_uuid
		limit 1), organization)
$$;
-- +goose StatementEnd
