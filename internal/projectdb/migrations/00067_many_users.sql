-- +goose Up
-- Many users in one statement: what follows the rows of auth.users is one statement too, where each row had several. The check of a
-- row asks once who writes it.

-- +goose StatementBegin
create or replace function auth.check_user() returns trigger
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
	platform constant boolean := auth.is_platform(current_user, tg_relid);
	fixed text;
	providers text[] := '{}';
begin
	if not platform and not has_table_privilege(current_user, tg_relid, 'trigger') then
		raise insufficient_privilege using message = 'only the project''s owner changes auth.users by SQL';
	end if;
	if tg_op = 'DELETE' then
		return old;
	end if;
	if platform then
		return new;
	end if;

	if tg_op = 'UPDATE' then
		fixed := case when new.deleted_at is distinct from old.deleted_at then 'deleted_at'
			when new.id is distinct from old.id then 'id'
			when new.is_sso_user is distinct from old.is_sso_user then 'is_sso_user' end;
		if fixed is not null then
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

-- As the platform, like auth.follow_user, which the release before grants to the owner.
create function auth.follow_users(written uuid[], new_passwords uuid[], new_addresses uuid[]) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
	-- A trigger of the project can have deleted some.
	insert into auth.identities as i (provider_id, user_id, identity_data, provider, last_sign_in_at, created_at, updated_at)
	select u.id::text, u.id, n.data, n.provider, now(), now(), now()
	from (select distinct w.id from unnest(written) w (id)) w
	join auth.users u on u.id = w.id,
	lateral (values
		('email', u.email, jsonb_build_object('sub', u.id, 'email', u.email, 'email_verified', u.email_confirmed_at is not null,
			'phone_verified', false)),
		('phone', u.phone, jsonb_build_object('sub', u.id, 'phone', u.phone, 'email_verified', false,
			'phone_verified', u.phone_confirmed_at is not null))) n (provider, address, data)
	where n.address is not null
	on conflict (provider_id, provider) do update set identity_data = i.identity_data || excluded.identity_data, updated_at = now()
	where not i.identity_data @> excluded.identity_data;

	if cardinality(new_addresses) > 0 then
		delete from auth.identities i using unnest(new_addresses) w (id) join auth.users u on u.id = w.id
		where i.user_id = u.id and (i.provider = 'email' and u.email is null or i.provider = 'phone' and u.phone is null);
	end if;
	if cardinality(new_addresses || new_passwords) > 0 then
		delete from auth.one_time_tokens t using unnest(new_addresses || new_passwords) w (id) where t.user_id = w.id;
	end if;
	if cardinality(new_passwords) > 0 then
		delete from auth.sessions s using unnest(new_passwords) w (id) where s.user_id = w.id;
	end if;
end $$;
comment on function auth.follow_users is 'updates what depends on the addresses, the numbers and the passwords of users';

create function auth.refuse_written(id uuid) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
	raise check_violation using schema = 'auth', table = 'users',
		message = format('user %s: a trigger has set an id, an address, a number, a role or is_sso_user that is refused', id);
end $$;

-- A trigger of the owner can have changed what auth.check_user has checked.
create function auth.users_inserted() returns trigger
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
	if auth.is_platform(current_user, tg_relid) then
		return null;
	end if;

	perform auth.check_times(w), auth.clean_metadata('raw_user_meta_data', w.raw_user_meta_data),
		auth.clean_metadata('raw_app_meta_data', w.raw_app_meta_data),
		case when w.email is distinct from auth.clean_email(w.email) or w.phone is distinct from auth.clean_phone(w.phone)
			or w.is_sso_user or octet_length(w.role) > 63 or w.role = 'service_role' then auth.refuse_written(w.id) end
	from written w;

	perform auth.follow_users(array(select w.id from written w), '{}', '{}');
	return null;
end $$;
comment on function auth.users_inserted is 'checks the users that the owner has inserted, and makes their identities';

-- A nested loop over the old and the new rows would be quadratic, and a plan for few rows serves for many.
create function auth.users_updated() returns trigger
language plpgsql set search_path = pg_catalog, pg_temp set enable_nestloop = off as $$
declare
	changed uuid[];
	new_passwords uuid[];
	new_addresses uuid[];
begin
	if auth.is_platform(current_user, tg_relid) then
		return null;
	end if;

	perform auth.check_times(w), auth.clean_metadata('raw_user_meta_data', w.raw_user_meta_data),
		auth.clean_metadata('raw_app_meta_data', w.raw_app_meta_data),
		case when o.id is null or w.email is distinct from o.email and w.email is distinct from auth.clean_email(w.email)
			or w.phone is distinct from o.phone and w.phone is distinct from auth.clean_phone(w.phone)
			or w.is_sso_user or octet_length(w.role) > 63
			or w.role = 'service_role' and w.role is distinct from o.role then auth.refuse_written(w.id) end
	from written w left join former o on o.id = w.id;

	select array_agg(w.id), array_agg(w.id) filter (where w.encrypted_password is distinct from o.encrypted_password),
		array_agg(w.id) filter (where (w.email, w.phone) is distinct from (o.email, o.phone))
	into changed, new_passwords, new_addresses
	from written w join former o on o.id = w.id
	where (w.email, w.phone, w.email_confirmed_at, w.phone_confirmed_at, w.encrypted_password)
		is distinct from (o.email, o.phone, o.email_confirmed_at, o.phone_confirmed_at, o.encrypted_password);
	if changed is not null then
		perform auth.follow_users(changed, coalesce(new_passwords, '{}'), coalesce(new_addresses, '{}'));
	end if;
	return null;
end $$;
comment on function auth.users_updated is 'checks the users that the owner has changed, and updates what depends on them';

-- From migration 50. The triggers are named: those of webhooks on users are no substitute for one of them.
create or replace function socle.return_users() returns event_trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
	login constant oid := (select relowner from pg_class where oid = to_regclass('auth.identities'));
begin
	update pg_class set relowner = login where oid = to_regclass('auth.users') and relowner <> login;
	if found and (exists (
		select from pg_event_trigger_ddl_commands() d where d.schema_name = 'auth' and d.classid <> 'pg_trigger'::regclass)
		or (select count(*) from pg_trigger t where t.tgrelid = to_regclass('auth.users')
			and t.tgname in ('socle_check_user', 'socle_hide_password', 'socle_password_deleted', 'socle_password_inserted',
				'socle_password_updated', 'socle_users_inserted', 'socle_users_updated')) < 7) then
		raise insufficient_privilege using message = 'auth.users belongs to the platform: only its triggers can be changed';
	end if;
end $$;
-- +goose StatementEnd
revoke execute on function auth.follow_users(uuid[], uuid[], uuid[]), auth.refuse_written(uuid), auth.users_inserted(), auth.users_updated()
	from public;

drop trigger socle_user_written on auth.users;
drop function auth.user_written();
create trigger socle_users_inserted after insert on auth.users referencing new table as written
	for each statement when (current_user <> current_database() || '_auth') execute function auth.users_inserted();
create trigger socle_users_updated after update on auth.users referencing old table as former new table as written
	for each statement when (current_user <> current_database() || '_auth') execute function auth.users_updated();
