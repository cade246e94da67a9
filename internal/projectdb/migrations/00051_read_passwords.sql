-- +goose Up
-- User code runs as the auth login: triggers on auth.users, casts in checks of foreign keys, and triggers that are deferred to the
-- end of its transactions. So that login reads no hash: auth.passwords belongs to the platform's login, and auth.sign_ups refers to it.
-- A server of the release before verifies no password.

alter table auth.passwords owner to current_user;
comment on column auth.sign_ups.encrypted_password is 'reference to auth.passwords';

-- +goose StatementBegin
create or replace function auth.store_password(new_hash text) returns text
language sql volatile strict security definer set search_path = pg_catalog, pg_temp
begin atomic
	insert into auth.passwords (hash) values (new_hash) returning reference;
end;

-- From migration 50, with auth.sign_ups.
create or replace function auth.hide_passwords() returns void
language sql set search_path = pg_catalog, pg_temp set session_replication_role = replica as $$
	with hidden as (
		insert into auth.passwords (user_id, hash)
		select u.id, u.encrypted_password from auth.users u
		where u.encrypted_password is not null and not starts_with(u.encrypted_password, '$2$hidden$')
		returning user_id, reference
	)
	update auth.users u set encrypted_password = h.reference from hidden h where u.id = h.user_id;

	update auth.sign_ups s set encrypted_password = auth.store_password(s.encrypted_password)
	where s.encrypted_password is not null and not starts_with(s.encrypted_password, '$2$hidden$');

	delete from pg_statistic s using pg_attribute a
	where s.starelid = any('{auth.users,auth.sign_ups}'::regclass[]) and a.attrelid = s.starelid and a.attnum = s.staattnum
		and a.attname = 'encrypted_password';
$$;
-- +goose StatementEnd

select auth.hide_passwords();

-- As in migration 50: a transaction with an older snapshot finds no former row.
alter table auth.sign_ups add column rewritten uuid default gen_random_uuid();
alter table auth.sign_ups drop column rewritten;
