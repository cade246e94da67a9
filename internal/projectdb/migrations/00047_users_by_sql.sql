-- +goose Up
-- The project's owner creates, changes and deletes end users by SQL, as seeds for Supabase do. Triggers check what packages enduser,
-- address and password check. They fire for the owner only: others that reach the tables, through a view of the owner's, are refused.
-- The owner's statements still read neither hashes nor tokens.

-- +goose StatementBegin
create function auth.is_platform(acting name, changed oid) returns boolean
language sql stable set search_path = pg_catalog, pg_temp
as $$
	select r.rolsuper or r.oid = (select c.relowner from pg_class c where c.oid = changed) from pg_roles r where r.rolname = acting
$$;
comment on function auth.is_platform is 'reports whether a role is the platform''s login or the owner of a table of this schema';

-- The canonical form of package address, for addresses of ASCII. SQL knows no IDNA.
create function auth.clean_email(address text) returns text
language plpgsql immutable set search_path = pg_catalog, pg_temp as $$
declare
	clean constant text := lower(btrim(address, E' \t\r\n') collate "C");
	atom constant text := '[a-z0-9!#$%&''*+/=?^_`{|}~-]+';
	atoms constant text := atom || '(\.' || atom || ')*';
begin
	if octet_length(clean) > 254 or clean collate "C" !~ ('^' || atoms || '@' || atoms || '$') or clean like '%@-%'
		or octet_length(split_part(clean, '@', 1)) > 64 or split_part(clean, '@', 2) like '%xn--%' then
		raise check_violation using schema = 'auth', table = 'users', column = 'email',
			message = format('email %L must be an address of ASCII', left(address, 254)),
			hint = 'The import of end users takes addresses of other languages.';
	end if;
	return clean;
end $$;
comment on function auth.clean_email is 'returns an address in its canonical form';

create function auth.clean_phone(number text) returns text
language plpgsql immutable set search_path = pg_catalog, pg_temp as $$
declare
	clean constant text := replace(regexp_replace(btrim(number, E' \t\r\n'), '^\+', ''), ' ', '');
begin
	if clean !~ '^[1-9][0-9]{1,14}$' then
		raise check_violation using schema = 'auth', table = 'users', column = 'phone',
			message = format('phone %L must be a number of E.164', left(number, 32));
	end if;
	return clean;
end $$;
comment on function auth.clean_phone is 'returns a number in its stored form';

-- The bounds of package password.
create function auth.check_hash(hash text) returns void
language plpgsql immutable set search_path = pg_catalog, pg_temp as $$
declare
	costs constant text[] := regexp_match(hash,
		'^\$argon2id\$v=19\$m=([1-9][0-9]{0,4}),t=([1-9][0-9]?),p=([1-9][0-9]?)\$[A-Za-z0-9+/]{11,86}\$[A-Za-z0-9+/]{43}$');
begin
	if hash ~ '^\$2[aby]\$(0[4-9]|1[0-2])\$[./A-Za-z0-9]{53}$'
		or (costs[1]::bigint <= 77824 and costs[1]::bigint * costs[2]::bigint <= 155648) then
		return;
	end if;
	raise check_violation using schema = 'auth', table = 'users', column = 'encrypted_password',
		message = 'encrypted_password must be a hash: bcrypt of cost 4 to 12, or argon2id of a moderate cost',
		hint = 'crypt(''password'', gen_salt(''bf'')) makes one.';
end $$;
comment on function auth.check_hash is 'refuses what is no hash that log-ins verify';

create function auth.clean_metadata(name text, value jsonb) returns jsonb
language plpgsql immutable set search_path = pg_catalog, pg_temp as $$
begin
	if value is null or value = 'null' then
		return '{}';
	end if;
	if jsonb_typeof(value) <> 'object' or octet_length(value::text) > 16384 then
		raise check_violation using schema = 'auth', column = name, message = format('%s must be an object of at most 16384 bytes', name);
	end if;
	return value;
end $$;
comment on function auth.clean_metadata is 'refuses what is no metadata, and returns an object';

-- Times that JSON has no form for.
create function auth.check_times(person auth.users) returns void
language plpgsql immutable set search_path = pg_catalog, pg_temp as $$
begin
	if exists (select from unnest(array[person.email_confirmed_at, person.invited_at, person.confirmation_sent_at, person.recovery_sent_at,
		person.email_change_sent_at, person.last_sign_in_at, person.created_at, person.updated_at, person.phone_confirmed_at,
		person.phone_change_sent_at, person.banned_until, person.reauthentication_sent_at, person.deleted_at]) t (v)
		where not isfinite(v) or v < '0001-01-02 00:00:00+00' or v >= '9999-12-31 00:00:00+00') then
		raise check_violation using schema = 'auth', table = 'users', message = format('user %s: times must be in the years 1 to 9999', person.id),
			hint = 'For a ban without end: banned_until = now() + interval ''100 years''.';
	end if;
end $$;
comment on function auth.check_times is 'refuses infinite times, and those of years that JSON has no form for';

create function auth.check_user() returns trigger
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
		if new.encrypted_password is not null then
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
comment on function auth.check_user is 'checks what the owner writes into auth.users, and refuses what others do';

-- As the platform: the owner changes neither sessions nor tokens. None of these tables has user code.
create function auth.follow_user(changed uuid, changed_password boolean, changed_address boolean) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
	person auth.users;
begin
	select * into person from auth.users u where u.id = changed;
	if not found then -- a trigger of the project has deleted it
		return;
	end if;

	insert into auth.identities as i (provider_id, user_id, identity_data, provider, last_sign_in_at, created_at, updated_at)
	select person.id::text, person.id, n.data, n.provider, now(), now(), now()
	from (values
		('email', jsonb_build_object('sub', person.id, 'email', person.email, 'email_verified', person.email_confirmed_at is not null,
			'phone_verified', false), person.email is not null),
		('phone', jsonb_build_object('sub', person.id, 'phone', person.phone, 'email_verified', false,
			'phone_verified', person.phone_confirmed_at is not null), person.phone is not null)) n (provider, data, present)
	where n.present
	on conflict (provider_id, provider) do update set identity_data = i.identity_data || excluded.identity_data, updated_at = now()
	where not i.identity_data @> excluded.identity_data;

	if changed_address then
		delete from auth.identities i where i.user_id = person.id
			and ((i.provider = 'email' and person.email is null) or (i.provider = 'phone' and person.phone is null));
	end if;
	if changed_address or changed_password then
		delete from auth.one_time_tokens t where t.user_id = person.id;
	end if;
	if changed_password then
		delete from auth.sessions s where s.user_id = person.id;
	end if;
end $$;
comment on function auth.follow_user is 'updates what depends on the address, the number and the password of a user';

create function auth.user_written() returns trigger
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
	if new.encrypted_password is not null and (tg_op = 'INSERT' or new.encrypted_password is distinct from old.encrypted_password) then
		perform auth.check_hash(new.encrypted_password);
	end if;
	perform auth.clean_metadata('raw_user_meta_data', new.raw_user_meta_data), auth.clean_metadata('raw_app_meta_data', new.raw_app_meta_data);

	perform auth.follow_user(new.id, tg_op = 'UPDATE' and new.encrypted_password is distinct from old.encrypted_password,
		tg_op = 'UPDATE' and (new.email, new.phone) is distinct from (old.email, old.phone));
	return null;
end $$;

create function auth.check_identity() returns trigger
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
	if auth.is_platform(current_user, tg_relid) then
		return new;
	end if;
	if not has_table_privilege(current_user, 'auth.users', 'trigger') then
		raise insufficient_privilege using message = 'only the project''s owner changes auth.identities by SQL';
	end if;

	if new.provider in ('email', 'phone') then -- they are those of auth.users
		if not exists (select from auth.users u where u.id = new.user_id) then
			raise foreign_key_violation using schema = 'auth', table = 'identities', constraint = 'identities_user_id_fkey',
				message = format('identity: there is no user %s', new.user_id);
		end if;
		return null;
	end if;
	if new.provider is null or octet_length(new.provider) not between 1 and 63
		or new.provider_id is null or octet_length(new.provider_id) not between 1 and 255 then
		raise check_violation using schema = 'auth', table = 'identities',
			message = 'identity: provider must have 1 to 63 bytes, provider_id 1 to 255';
	end if;
	new.identity_data := auth.clean_metadata('identity_data', new.identity_data);
	new.created_at := coalesce(new.created_at, now());
	new.updated_at := coalesce(new.updated_at, now());
	return new;
end $$;
comment on function auth.check_identity is 'checks the identities that the owner inserts; those of addresses and numbers exist with their user';

-- As the owner, since triggers of the project fire.
create function auth.identity_written() returns trigger
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
	if auth.is_platform(current_user, tg_relid) then
		return null;
	end if;

	update auth.users u set raw_app_meta_data = coalesce(u.raw_app_meta_data, '{}')
		|| jsonb_build_object('provider', p.names -> 0, 'providers', p.names)
	from (select jsonb_agg(i.provider order by i.first, i.provider) as names from (
		select provider, min(created_at) as first from auth.identities where user_id = new.user_id group by provider) i) p
	where u.id = new.user_id;
	return null;
end $$;

-- The triggers of the platform cannot be dropped: they keep the tables closed to others than the owner.
create or replace function socle.return_users() returns event_trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
	login constant oid := (select relowner from pg_class where oid = to_regclass('auth.identities'));
begin
	update pg_class set relowner = login where oid = to_regclass('auth.users') and relowner <> login;
	if found and (exists (
		select from pg_event_trigger_ddl_commands() d where d.schema_name = 'auth' and d.classid <> 'pg_trigger'::regclass)
		or (select count(*) from pg_trigger t where t.tgrelid = to_regclass('auth.users')
			and t.tgname in ('socle_check_user', 'socle_user_written')) < 2) then
		raise insufficient_privilege using message = 'auth.users belongs to the platform: only its triggers can be changed';
	end if;
end $$;

create function socle.refuse_platform_triggers() returns event_trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
	if (select rolsuper from pg_authid where rolname = session_user) then
		return;
	end if;
	perform from pg_event_trigger_ddl_commands() d join pg_trigger t on t.oid = d.objid
	where d.classid = 'pg_trigger'::regclass and t.tgrelid = to_regclass('auth.users') and t.tgname like 'socle\_%';
	if found then
		raise insufficient_privilege using message = 'triggers of auth.users whose names begin with socle_ belong to the platform';
	end if;
end $$;
-- +goose StatementEnd
revoke execute on function auth.is_platform(name, oid), auth.clean_email(text), auth.clean_phone(text), auth.check_hash(text),
	auth.clean_metadata(text, jsonb), auth.check_times(auth.users), auth.check_user(), auth.follow_user(uuid, boolean, boolean), auth.user_written(),
	auth.check_identity(), auth.identity_written(), socle.refuse_platform_triggers() from public;
create event trigger socle_refuse_platform_triggers on ddl_command_end when tag in ('CREATE TRIGGER')
	execute function socle.refuse_platform_triggers();

create trigger socle_check_user before insert or update or delete on auth.users
	for each row when (current_user <> current_database() || '_auth') execute function auth.check_user();
create trigger socle_user_written after insert or update on auth.users
	for each row when (current_user <> current_database() || '_auth') execute function auth.user_written();
create trigger check_identity before insert on auth.identities
	for each row when (current_user <> current_database() || '_auth') execute function auth.check_identity();
create trigger identity_written after insert on auth.identities
	for each row when (current_user <> current_database() || '_auth') execute function auth.identity_written();
