-- +goose Up
-- Hashes of end users' passwords move from auth.users to a table of their own, so that the project's owner may read every column
-- of auth.users. auth.users.encrypted_password keeps a reference, which changes with each change of the password. Whoever writes a
-- hash into the column, a trigger moves it. A server of the release before writes passwords, and verifies none of them.

create table auth.passwords (
	reference text constraint passwords_pkey primary key default '$2$hidden$' || gen_random_uuid(),
	user_id uuid,
	hash text not null,
	created_at timestamptz not null default now()
);
comment on table auth.passwords is 'argon2id; bcrypt and scrypt of imported users until their next log-in';
comment on column auth.passwords.reference is 'the text in auth.users.encrypted_password; crypt() fails with it as a salt';
comment on column auth.passwords.user_id is
	'whose password it is; null until the row of the user is written, and for good if that was left out: no foreign key, since it comes first';
create index passwords_unclaimed on auth.passwords (created_at) where user_id is null;
alter table auth.passwords disable row level security;
comment on column auth.users.encrypted_password is 'reference to auth.passwords';

-- +goose StatementBegin
create function auth.store_password(new_hash text) returns text
language sql volatile strict
begin atomic
	insert into auth.passwords (hash) values (new_hash) returning reference;
end;
comment on function auth.store_password is 'stores a hash, and returns the reference for encrypted_password';

create function auth.hide_password() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
	new.encrypted_password := auth.store_password(new.encrypted_password);
	return new;
end $$;
comment on function auth.hide_password is 'replaces a hash by a reference to it';

-- A trigger of the project can have changed the password again.
create function auth.password_written() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
	is_theirs boolean;
begin
	if tg_op <> 'INSERT' then
		delete from auth.passwords p where p.reference = old.encrypted_password and coalesce(p.user_id = old.id, true);
	end if;
	if tg_op = 'DELETE' or new.encrypted_password is null then
		return null;
	end if;

	-- No condition on user_id: passwords_unclaimed has all rows of a large insert, and would be read for each.
	update auth.passwords p set user_id = coalesce(p.user_id, new.id) where p.reference = new.encrypted_password
	returning p.user_id = new.id into is_theirs;
	if is_theirs is not true and exists (
		select from auth.users u where u.id = new.id and u.encrypted_password = new.encrypted_password) then
		raise check_violation using schema = 'auth', table = 'users', column = 'encrypted_password',
			message = format('user %s: encrypted_password must be a hash that the statement itself sets', new.id),
			hint = 'What SQL reads in this column stands for the hash, and belongs to one user.';
	end if;
	return null;
end $$;
comment on function auth.password_written is 'gives a hash to its user, and deletes the former one';

-- As the platform, for this migration and for backups of former releases: without triggers, which are the project's code. Statistics
-- have values of the column.
create function auth.hide_passwords() returns void
language sql set search_path = pg_catalog, pg_temp set session_replication_role = replica as $$
	with hidden as (
		insert into auth.passwords (user_id, hash)
		select u.id, u.encrypted_password from auth.users u
		where u.encrypted_password is not null and not starts_with(u.encrypted_password, '$2$hidden$')
		returning user_id, reference
	)
	update auth.users u set encrypted_password = h.reference from hidden h where u.id = h.user_id;

	delete from pg_statistic s using pg_attribute a
	where s.starelid = 'auth.users'::regclass and a.attrelid = s.starelid and a.attnum = s.staattnum and a.attname = 'encrypted_password';
$$;
comment on function auth.hide_passwords is 'moves the hashes that former releases left in auth.users';

-- From migration 47, for references: an upsert has them, and auth.password_written refuses those of others.
create or replace function auth.check_user() returns trigger
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
	fixed text;
	providers text[] := '{}';
begin
	if not auth.is_platform(current_user, tg_relid) and not has_table_privilege(current_user, tg_relid, 'trigger') then
		raise insufficient_privilege using message = 'only the project''s owner changes auth.users by SQL';
	end if;
	if tg_op = 'DELETE' then
		return old;
	end if;
	if auth.is_platform(current_user, tg_relid) then
		return new;
	end if;

	if tg_op = 'UPDATE' then
		select n.key into fixed
		from jsonb_each(to_jsonb(new)) n
		where n.value is distinct from to_jsonb(old) -> n.key and n.key = any('{id,is_sso_user,deleted_at}')
		order by n.key limit 1;
		if found then
			raise insufficient_privilege using schema = 'auth', table = 'users', column = fixed,
				message = format('user %s: %s cannot be changed', old.id, fixed);
		end if;
	elsif new.deleted_at is not null then
		raise check_violation using schema = 'auth', table = 'users', column = 'deleted_at', message = 'deleted_at must be null';
	elsif new.is_sso_user then
		raise check_violation using schema = 'auth', table = 'users', column = 'is_sso_user',
			message = 'is_sso_user must be false: projects have no single sign-on by SAML';
	end if;

	-- A user of a former release can have what these functions refuse.
	if tg_op = 'INSERT' or new.email is distinct from old.email then
		new.email := auth.clean_email(nullif(new.email, ''));
	end if;
	if tg_op = 'INSERT' or new.phone is distinct from old.phone then
		new.phone := auth.clean_phone(nullif(new.phone, ''));
	end if;
	if tg_op = 'INSERT' or new.encrypted_password is distinct from old.encrypted_password then
		new.encrypted_password := nullif(new.encrypted_password, '');
		if not starts_with(new.encrypted_password, '$2$hidden$') then
			perform auth.check_hash(new.encrypted_password);
		end if;
	end if;

	new.role := coalesce(nullif(new.role, ''), 'authenticated');
	if octet_length(new.role) > 63 then
		raise check_violation using schema = 'auth', table = 'users', column = 'role', message = 'role must have at most 63 bytes';
	end if;
	if new.role = 'service_role' and (tg_op = 'INSERT' or new.role is distinct from old.role) then
		raise insufficient_privilege using schema = 'auth', table = 'users', column = 'role',
			message = 'role cannot become service_role by SQL';
	end if;
	new.instance_id := '00000000-0000-0000-0000-000000000000';
	new.aud := 'authenticated';
	new.is_anonymous := coalesce(new.is_anonymous, false);
	new.is_sso_user := coalesce(new.is_sso_user, false);
	new.created_at := coalesce(new.created_at, now());
	new.updated_at := coalesce(new.updated_at, now());
	new.email_change_confirm_status := coalesce(new.email_change_confirm_status, 0);

	if tg_op = 'INSERT' or new.raw_user_meta_data is distinct from old.raw_user_meta_data then
		new.raw_user_meta_data := auth.clean_metadata('raw_user_meta_data', new.raw_user_meta_data);
	end if;
	if tg_op = 'INSERT' or new.raw_app_meta_data is distinct from old.raw_app_meta_data then
		new.raw_app_meta_data := auth.clean_metadata('raw_app_meta_data', new.raw_app_meta_data);
	end if;
	if tg_op = 'INSERT' then
		providers := array_remove(array[case when new.email is not null then 'email' end, case when new.phone is not null then 'phone' end], null);
		if cardinality(providers) > 0 then
			new.raw_app_meta_data := jsonb_build_object('provider', providers[1], 'providers', to_jsonb(providers)) || new.raw_app_meta_data;
		end if;

		if concat(new.confirmation_token, new.recovery_token, new.email_change_token_new, new.email_change_token_current,
			new.phone_change_token, new.reauthentication_token, new.email_change, new.phone_change) <> '' then
			raise notice 'user %: tokens and unconfirmed changes are left out', new.id;
		end if;
		new.email_change := '';
		new.phone_change := '';
		new.email_change_confirm_status := 0;
	elsif concat(new.email_change, ' ', new.phone_change) <> concat(old.email_change, ' ', old.phone_change) then
		new.email_change := old.email_change;
		new.phone_change := old.phone_change;
		raise notice 'user %: unconfirmed changes are left out', new.id;
	end if;
	perform auth.check_times(new);
	new.confirmation_token := '';
	new.recovery_token := '';
	new.email_change_token_new := '';
	new.email_change_token_current := '';
	new.phone_change_token := '';
	new.reauthentication_token := '';
	return new;
end $$;

-- From migration 47, without the hash.
create or replace function auth.user_written() returns trigger
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
	if auth.is_platform(current_user, tg_relid) then
		return null;
	end if;

	-- A trigger of the owner can have changed what auth.check_user has checked.
	perform auth.check_times(new);
	if (tg_op = 'INSERT' or new.email is distinct from old.email) and new.email is distinct from auth.clean_email(new.email)
		or (tg_op = 'INSERT' or new.phone is distinct from old.phone) and new.phone is distinct from auth.clean_phone(new.phone)
		or new.is_sso_user or octet_length(new.role) > 63
		or new.role = 'service_role' and (tg_op = 'INSERT' or new.role is distinct from old.role) then
		raise check_violation using schema = 'auth', table = 'users',
			message = format('user %s: a trigger has set an address, a number, a role or is_sso_user that is refused', new.id);
	end if;
	perform auth.clean_metadata('raw_user_meta_data', new.raw_user_meta_data), auth.clean_metadata('raw_app_meta_data', new.raw_app_meta_data);

	perform auth.follow_user(new.id, tg_op = 'UPDATE' and new.encrypted_password is distinct from old.encrypted_password,
		tg_op = 'UPDATE' and (new.email, new.phone) is distinct from (old.email, old.phone));
	return null;
end $$;

-- From migration 47, with more triggers.
create or replace function socle.return_users() returns event_trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
	login constant oid := (select relowner from pg_class where oid = to_regclass('auth.identities'));
begin
	update pg_class set relowner = login where oid = to_regclass('auth.users') and relowner <> login;
	if found and (exists (
		select from pg_event_trigger_ddl_commands() d where d.schema_name = 'auth' and d.classid <> 'pg_trigger'::regclass)
		or (select count(*) from pg_trigger t where t.tgrelid = to_regclass('auth.users')
			and t.tgname like 'socle\_%') < 6) then
		raise insufficient_privilege using message = 'auth.users belongs to the platform: only its triggers can be changed';
	end if;
end $$;
-- +goose StatementEnd
revoke execute on function auth.store_password(text), auth.hide_password(), auth.password_written(), auth.hide_passwords() from public;

create trigger socle_hide_password before insert or update on auth.users
	for each row when (not starts_with(new.encrypted_password, '$2$hidden$')) execute function auth.hide_password();
create trigger socle_password_inserted after insert on auth.users
	for each row when (new.encrypted_password is not null) execute function auth.password_written();
create trigger socle_password_updated after update on auth.users
	for each row when (new.encrypted_password is distinct from old.encrypted_password) execute function auth.password_written();
create trigger socle_password_deleted after delete on auth.users
	for each row when (old.encrypted_password is not null) execute function auth.password_written();

select auth.hide_passwords();

-- A volatile default rewrites the table: a transaction of the owner's with an older snapshot finds no former row.
alter table auth.users add column rewritten uuid default gen_random_uuid();
alter table auth.users drop column rewritten;
