CREATE SCHEMA auth;

CREATE SCHEMA forms;

CREATE SCHEMA realtime;

CREATE SCHEMA socle;

CREATE SCHEMA storage;

CREATE FUNCTION auth.check_hash(hash text) RETURNS void
    LANGUAGE plpgsql IMMUTABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $_$
declare
	costs constant text[] := regexp_match(hash,
		'^\$argon2id\$v=19\$m=([1-9][0-9]{0,4}),t=([1-9][0-9]?),p=([1-9][0-9]?)\$[A-Za-z0-9+/]{11,86}\$[A-Za-z0-9+/]{43}$');
begin
	if hash ~ '^\$2[aby]\$(0[4-9]|1[0-2])\$[./A-Za-z0-9]{52}[.CGKOSWaeimquy26]$'
		or (costs[1]::bigint <= 77824 and costs[1]::bigint * costs[2]::bigint <= 155648) then
		return;
	end if;
	raise check_violation using schema = 'auth', table = 'users', column = 'encrypted_password',
		message = case when starts_with(hash, '$2')
			then 'encrypted_password is no hash of bcrypt: $2a$, $2b$ or $2y$, a cost of 4 to 12, and 53 characters of its alphabet'
			else 'encrypted_password must be a hash: bcrypt of cost 4 to 12, or argon2id of a moderate cost' end,
		hint = 'crypt(''password'', gen_salt(''bf'')) makes one.';
end $_$;

COMMENT ON FUNCTION auth.check_hash(hash text) IS 'refuses what is no hash that log-ins verify';

CREATE FUNCTION auth.check_identity() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
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

COMMENT ON FUNCTION auth.check_identity() IS 'checks the identities that the owner inserts; those of addresses and numbers exist with their user';

CREATE TABLE auth.users (
    instance_id uuid,
    id uuid NOT NULL,
    aud text,
    role text,
    email text,
    encrypted_password text,
    email_confirmed_at timestamp with time zone,
    invited_at timestamp with time zone,
    confirmation_token text,
    confirmation_sent_at timestamp with time zone,
    recovery_token text,
    recovery_sent_at timestamp with time zone,
    email_change_token_new text,
    email_change text,
    email_change_sent_at timestamp with time zone,
    last_sign_in_at timestamp with time zone,
    raw_app_meta_data jsonb,
    raw_user_meta_data jsonb,
    is_super_admin boolean,
    created_at timestamp with time zone,
    updated_at timestamp with time zone,
    phone text,
    phone_confirmed_at timestamp with time zone,
    phone_change text DEFAULT ''::text,
    phone_change_token text DEFAULT ''::text,
    phone_change_sent_at timestamp with time zone,
    confirmed_at timestamp with time zone GENERATED ALWAYS AS (LEAST(email_confirmed_at, phone_confirmed_at)) STORED,
    email_change_token_current text DEFAULT ''::text,
    email_change_confirm_status smallint DEFAULT 0,
    banned_until timestamp with time zone,
    reauthentication_token text DEFAULT ''::text,
    reauthentication_sent_at timestamp with time zone,
    is_sso_user boolean DEFAULT false NOT NULL,
    deleted_at timestamp with time zone,
    is_anonymous boolean DEFAULT false NOT NULL,
    CONSTRAINT users_email_change_confirm_status_check CHECK (((email_change_confirm_status >= 0) AND (email_change_confirm_status <= 2)))
);

COMMENT ON COLUMN auth.users.encrypted_password IS 'reference to auth.passwords';

COMMENT ON COLUMN auth.users.confirmation_token IS 'unused, like the other columns of tokens: see one_time_tokens';

CREATE FUNCTION auth.check_times(person auth.users) RETURNS void
    LANGUAGE plpgsql IMMUTABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
	if exists (select from unnest(array[person.email_confirmed_at, person.invited_at, person.confirmation_sent_at, person.recovery_sent_at,
		person.email_change_sent_at, person.last_sign_in_at, person.created_at, person.updated_at, person.phone_confirmed_at,
		person.phone_change_sent_at, person.banned_until, person.reauthentication_sent_at, person.deleted_at]) t (v)
		where not isfinite(v) or v < '0001-01-02 00:00:00+00' or v >= '9999-12-31 00:00:00+00') then
		raise check_violation using schema = 'auth', table = 'users', message = format('user %s: times must be in the years 1 to 9999', person.id),
			hint = 'For a ban without end: banned_until = now() + interval ''100 years''.';
	end if;
end $$;

COMMENT ON FUNCTION auth.check_times(person auth.users) IS 'refuses infinite times, and those of years that JSON has no form for';

CREATE FUNCTION auth.check_user() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $_$
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
end $_$;

COMMENT ON FUNCTION auth.check_user() IS 'checks what the owner writes into auth.users, and refuses what others do';

CREATE FUNCTION auth.clean_email(address text) RETURNS text
    LANGUAGE plpgsql IMMUTABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $_$
declare
	clean constant text := lower(btrim(address, E' \t\r\n') collate "C");
	atom constant text := '[a-z0-9!#$%&''*+/=?^_`{|}~-]+';
	atoms constant text := atom || '(\.' || atom || ')*';
	fault text;
begin
	if octet_length(clean) > 254 or clean collate "C" !~ ('^' || atoms || '@' || atoms || '$') or clean like '%@-%'
		or octet_length(split_part(clean, '@', 1)) > 64 or split_part(clean, '@', 2) like '%xn--%' then
		fault := case
			when octet_length(clean) > 254 then 'it has more than 254 bytes'
			when octet_length(clean) > length(clean) then 'it has characters beyond ASCII'
			when clean not like '%@%' then 'it has no @'
			when clean like '%@%@%' then 'it has more than one @'
			when clean like '@%' then 'nothing stands before the @'
			when clean like '%@' then 'nothing stands after the @'
			when clean ~ '\s' then 'it has a space'
			when clean ~ '(^|@|\.)\.|\.(@|$)' then 'a dot must stand between two other characters'
			when clean like '%@-%' then 'its domain begins with -'
			when octet_length(split_part(clean, '@', 1)) > 64 then 'more than 64 bytes stand before the @'
			when split_part(clean, '@', 2) like '%xn--%' then 'its domain is in Punycode'
			else format('it has the character %L', substring(clean collate "C" from '[^a-z0-9!#$%&''*+/=?^_`{|}~.@-]'))
		end;
		raise check_violation using schema = 'auth', table = 'users', column = 'email',
			message = format('%L is no e-mail address: %s', left(address, 254), fault),
			hint = case when fault ~ 'ASCII|Punycode' then 'The import of end users takes addresses of other languages.'
				else 'An address has the form ann@example.com.' end;
	end if;
	return clean;
end $_$;

COMMENT ON FUNCTION auth.clean_email(address text) IS 'returns an address in its canonical form';

CREATE FUNCTION auth.clean_metadata(name text, value jsonb) RETURNS jsonb
    LANGUAGE plpgsql IMMUTABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
	if value is null or value = 'null' then
		return '{}';
	end if;
	if jsonb_typeof(value) <> 'object' or octet_length(value::text) > 16384 then
		raise check_violation using schema = 'auth', column = name, message = format('%s must be an object of at most 16384 bytes', name);
	end if;
	return value;
end $$;

COMMENT ON FUNCTION auth.clean_metadata(name text, value jsonb) IS 'refuses what is no metadata, and returns an object';

CREATE FUNCTION auth.clean_phone(number text) RETURNS text
    LANGUAGE plpgsql IMMUTABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $_$
declare
	clean constant text := replace(regexp_replace(btrim(number, E' \t\r\n'), '^\+', ''), ' ', '');
begin
	if clean !~ '^[1-9][0-9]{1,14}$' then
		raise check_violation using schema = 'auth', table = 'users', column = 'phone',
			message = format('phone %L must be a number of E.164', left(number, 32));
	end if;
	return clean;
end $_$;

COMMENT ON FUNCTION auth.clean_phone(number text) IS 'returns a number in its stored form';

CREATE FUNCTION auth.email() RETURNS text
    LANGUAGE sql STABLE PARALLEL SAFE
    RETURN ((NULLIF(current_setting('request.jwt.claims'::text, true), ''::text))::jsonb ->> 'email'::text);

CREATE FUNCTION auth.follow_user(changed uuid, changed_password boolean, changed_address boolean) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
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

COMMENT ON FUNCTION auth.follow_user(changed uuid, changed_password boolean, changed_address boolean) IS 'updates what depends on the address, the number and the password of a user';

CREATE FUNCTION auth.follow_users(written uuid[], new_passwords uuid[], new_addresses uuid[]) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
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

COMMENT ON FUNCTION auth.follow_users(written uuid[], new_passwords uuid[], new_addresses uuid[]) IS 'updates what depends on the addresses, the numbers and the passwords of users';

CREATE FUNCTION auth.hide_password() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
	new.encrypted_password := auth.store_password(new.encrypted_password);
	return new;
end $$;

COMMENT ON FUNCTION auth.hide_password() IS 'replaces a hash by a reference to it';

CREATE FUNCTION auth.hide_passwords() RETURNS void
    LANGUAGE sql
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET session_replication_role TO 'replica'
    AS $_$
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
$_$;

COMMENT ON FUNCTION auth.hide_passwords() IS 'moves the hashes that former releases left in auth.users';

CREATE FUNCTION auth.identity_written() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
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

CREATE FUNCTION auth.is_platform(acting name, changed oid) RETURNS boolean
    LANGUAGE sql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
	select r.rolsuper or r.oid = (select c.relowner from pg_class c where c.oid = changed) from pg_roles r where r.rolname = acting
$$;

COMMENT ON FUNCTION auth.is_platform(acting name, changed oid) IS 'reports whether a role is the platform''s login or the owner of a table of this schema';

CREATE FUNCTION auth.jwt() RETURNS jsonb
    LANGUAGE sql STABLE PARALLEL SAFE
    RETURN (NULLIF(current_setting('request.jwt.claims'::text, true), ''::text))::jsonb;

CREATE FUNCTION auth.password_written() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
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

COMMENT ON FUNCTION auth.password_written() IS 'gives a hash to its user, and deletes the former one';

CREATE FUNCTION auth.refuse_written(id uuid) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
	raise check_violation using schema = 'auth', table = 'users',
		message = format('user %s: a trigger has set an id, an address, a number, a role or is_sso_user that is refused', id);
end $$;

CREATE FUNCTION auth.role() RETURNS text
    LANGUAGE sql STABLE PARALLEL SAFE
    RETURN ((NULLIF(current_setting('request.jwt.claims'::text, true), ''::text))::jsonb ->> 'role'::text);

CREATE TABLE auth.passwords (
    reference text DEFAULT ('$2$hidden$'::text || gen_random_uuid()) NOT NULL,
    user_id uuid,
    hash text NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL
);

COMMENT ON TABLE auth.passwords IS 'argon2id; bcrypt and scrypt of imported users until their next log-in';

COMMENT ON COLUMN auth.passwords.reference IS 'the text in auth.users.encrypted_password; crypt() fails with it as a salt';

COMMENT ON COLUMN auth.passwords.user_id IS 'whose password it is; null until the row of the user is written, and for good if that was left out: no foreign key, since it comes first';

CREATE FUNCTION auth.store_password(new_hash text) RETURNS text
    LANGUAGE sql STRICT SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    BEGIN ATOMIC
 INSERT INTO auth.passwords (hash)
   VALUES (store_password.new_hash)
   RETURNING passwords.reference;
END;

COMMENT ON FUNCTION auth.store_password(new_hash text) IS 'stores a hash, and returns the reference for encrypted_password';

CREATE FUNCTION auth.uid() RETURNS uuid
    LANGUAGE sql STABLE PARALLEL SAFE
    RETURN (((NULLIF(current_setting('request.jwt.claims'::text, true), ''::text))::jsonb ->> 'sub'::text))::uuid;

COMMENT ON FUNCTION auth.uid() IS 'id of the end user of the request, null for a key';

CREATE FUNCTION auth.users_inserted() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
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

COMMENT ON FUNCTION auth.users_inserted() IS 'checks the users that the owner has inserted, and makes their identities';

CREATE FUNCTION auth.users_updated() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_nestloop TO 'off'
    AS $$
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

COMMENT ON FUNCTION auth.users_updated() IS 'checks the users that the owner has changed, and updates what depends on them';

CREATE FUNCTION realtime.broadcast_changes(topic_name text, event_name text, operation text, table_name text, table_schema text, new record, old record, level text DEFAULT 'ROW'::text) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
	if level = 'STATEMENT' then
		raise feature_not_supported using message = 'realtime.broadcast_changes: a trigger for each row calls it, not one for each statement';
	end if;
	perform realtime.send(jsonb_build_object('schema', table_schema, 'table', table_name, 'operation', operation,
		'record', new, 'old_record', old), event_name, topic_name);
end $$;

CREATE FUNCTION realtime.check_message() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
	if octet_length(new.topic) not between 1 and 246 or octet_length(new.event) > 255 then
		raise invalid_parameter_value using message = 'a message has a topic of 1 to 246 bytes, and an event of at most 255';
	end if;
	if octet_length(new.payload::text) > 262144 or octet_length(new.binary_payload) > 262144 then
		raise program_limit_exceeded using message = 'the payload of a message has at most 262144 bytes';
	end if;
	-- The time is the server's, since the oldest messages are removed first.
	new.inserted_at := clock_timestamp() at time zone 'UTC';
	return new;
end $$;

CREATE FUNCTION realtime.put_message(topic text, event text, private boolean, payload jsonb, binary_payload bytea) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
	message constant uuid := gen_random_uuid();
begin
	if jsonb_typeof(put_message.payload) = 'object' and not put_message.payload ? 'id' then
		put_message.payload := put_message.payload || jsonb_build_object('id', message);
	end if;

	perform set_config('realtime.topic', put_message.topic, true);
	insert into realtime.messages (id, topic, extension, event, private, payload, binary_payload)
	values (message, put_message.topic, 'broadcast', put_message.event, put_message.private, put_message.payload,
		put_message.binary_payload);
exception when others then
	raise warning 'the message to topic % is left out: %', left(put_message.topic, 246), sqlerrm;
end $$;

CREATE FUNCTION realtime.queue_message() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
	added bigint;
begin
	insert into socle.unsent_messages as m (id, inserted_at) values (new.id, new.inserted_at) returning m.seq into added;
	if added - (select m.seq from socle.unsent_messages m order by m.seq limit 1) >= 100000 then
		raise program_limit_exceeded using message = '100000 messages wait to be sent: a project can have no more';
	end if;
	return null;
end $$;

CREATE FUNCTION realtime.send(payload jsonb, event text, topic text, private boolean DEFAULT true) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
	perform realtime.put_message(topic, event, private, coalesce(payload, '{}'), null);
end $$;

CREATE FUNCTION realtime.send_binary(payload bytea, event text, topic text, private boolean DEFAULT true) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
	perform realtime.put_message(topic, event, private, null, coalesce(payload, ''));
end $$;

CREATE FUNCTION realtime.topic() RETURNS text
    LANGUAGE sql STABLE PARALLEL SAFE
    RETURN NULLIF(current_setting('realtime.topic'::text, true), ''::text);

CREATE FUNCTION socle.append_audit(new_seq bigint, new_entry text, new_hash bytea) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
	if session_user <> current_database() || '_owner' and not (select rolsuper from pg_roles where rolname = session_user) then
		raise insufficient_privilege using message = 'the audit log is written by the platform';
	end if;
	insert into socle.audit (seq, entry, hash) values (new_seq, new_entry, new_hash);
	update socle.audit_head set seq = new_seq, hash = new_hash where seq = new_seq - 1;
	if not found then
		raise exception 'entry % does not follow the last one', new_seq;
	end if;
end $$;

CREATE FUNCTION socle.capture(root oid) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET session_replication_role TO 'replica'
    SET lock_timeout TO '300ms'
    AS $_$
declare
	t oid;
	kind text;
	created boolean := false;
begin
	if not exists (select from pg_class where oid = root) then
		return;
	end if;
	-- One at a time: others would create the same triggers.
	perform pg_advisory_xact_lock('socle.captures'::regclass::oid::bigint);
	for slot in 0..9 loop
		if to_regclass('socle.events_' || slot) is null then
			execute format('create table socle.events_%1$s partition of socle.events for values in (%1$s)', slot);
		end if;
	end loop;

	for t in select root union select relid::oid from pg_partition_tree(root::regclass) loop
		foreach kind in array array['insert', 'update', 'delete', 'truncate'] loop
			continue when exists (
				select from pg_trigger where tgrelid = t and tgname = 'socle_capture_' || kind and tgenabled = 'O' and tgisinternal);
			execute format('create trigger %I after %s on %s %s for each statement execute function socle.capture_%2$s(%5$L)',
				'socle_capture_' || kind, kind, t::regclass,
				case kind when 'insert' then 'referencing new table as new_rows'
					when 'update' then 'referencing old table as old_rows new table as new_rows'
					when 'delete' then 'referencing old table as old_rows' else '' end, root);
			update pg_trigger set tgisinternal = true where tgrelid = t and tgname = 'socle_capture_' || kind;
			created := true;
		end loop;
	end loop;

	insert into socle.captures as c (relation) values (root)
	on conflict (relation) do update set followed_at = now(), since = case when created then pg_current_xact_id() else c.since end
	where created or c.followed_at < now() - interval '5 minutes';
end $_$;

CREATE FUNCTION socle.capture_delete() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
	insert into socle.events (relation, operation, old, size, oversized)
	select tg_argv[0]::oid, 'd', case when size > 1048576 then socle.small_members(r) else r end, least(size, 1048576), size > 1048576
	from (select r, octet_length(r::text) as size from (select row_to_json(o.*) as r from old_rows o offset 0) t offset 0) t;
	return null;
end $$;

CREATE FUNCTION socle.capture_insert() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
	insert into socle.events (relation, operation, record, size, oversized)
	select tg_argv[0]::oid, 'i', case when size > 1048576 then socle.small_members(r) else r end, least(size, 1048576), size > 1048576
	from (select r, octet_length(r::text) as size from (select row_to_json(n.*) as r from new_rows n offset 0) t offset 0) t;
	return null;
end $$;

CREATE FUNCTION socle.capture_truncate() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
	insert into socle.events (relation, operation) values (tg_argv[0]::oid, 't');
	return null;
end $$;

CREATE FUNCTION socle.capture_update() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
	insert into socle.events (relation, operation, record, old, size, oversized)
	select tg_argv[0]::oid, 'u', case when size > 1048576 then socle.small_members(r) else r end,
		case when size > 1048576 then socle.small_members(o) else o end, least(size, 1048576), size > 1048576
	from (
		select n.r, o.r as o, octet_length(n.r::text) + octet_length(o.r::text) as size
		from (select row_number() over () as i, row_to_json(t.*) as r from new_rows t) n
		join (select row_number() over () as i, row_to_json(t.*) as r from old_rows t) o using (i)
		offset 0
	) t;
	return null;
end $$;

CREATE FUNCTION socle.change_catalogue_version() RETURNS event_trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
	-- Temporary objects are in nobody's catalogue. DROP has no objects at its end: sql_drop has them.
	if tg_event = 'sql_drop' then
		if not exists (select from pg_event_trigger_dropped_objects() where not is_temporary) then
			return;
		end if;
	elsif tg_tag = 'REFRESH MATERIALIZED VIEW'
		or not exists (select from pg_event_trigger_ddl_commands() where schema_name is distinct from 'pg_temp') then
		return;
	end if;

	insert into socle.catalogue_version (n, xact)
	values (1 + (hashtextextended(gen_random_uuid()::text, 0) & 1099511627775), pg_current_xact_id())
	on conflict (xact) do nothing;
	if found then
		perform setval('socle.catalogue_changes', 1 + (hashtextextended(gen_random_uuid()::text, 0) & 1099511627775));
	end if;
end $$;

CREATE FUNCTION socle.claim_answer(key bytea) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
	if not pg_try_advisory_xact_lock(hashtextextended(encode(claim_answer.key, 'hex'), 0)) then
		raise lock_not_available using message = 'a request with the key is in progress';
	end if;
	if exists (select from socle.find_answer(claim_answer.key)) then
		raise unique_violation using message = 'a request with the key has an answer';
	end if;
end $$;

CREATE FUNCTION socle.close_new_tables() RETURNS event_trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
	update pg_class c set relrowsecurity = true
	from pg_event_trigger_ddl_commands() d
	where d.classid = 'pg_class'::regclass and c.oid = d.objid
		and c.relkind in ('r', 'p') and c.relpersistence <> 't' and not c.relrowsecurity;
end $$;

CREATE FUNCTION socle.create_event_slots() RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET session_replication_role TO 'replica'
    AS $_$
begin
	-- One at a time: others would create the same tables and triggers.
	perform pg_advisory_xact_lock('socle.captures'::regclass::oid::bigint);
	for slot in 0..9 loop
		if to_regclass('socle.events_' || slot) is null then
			execute format('create table socle.events_%1$s partition of socle.events for values in (%1$s)', slot);
		end if;
	end loop;
end $_$;

CREATE FUNCTION socle.file_fact() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
	f record;
	data jsonb;
begin
	if tg_op = 'DELETE' then f := old; else f := new; end if;
	data := jsonb_build_object('id', f.uuid, 'container', f.container_uuid, 'bucket', f.bucket_id, 'name', f.full_file_name,
		'mime_type', f.mime_type, 'size', f.size, 'sha256', encode(f.sha256, 'hex'), 'owner', f.owner_id);
	if tg_argv[0] = 'socle.file.moved.v1' then
		data := data || jsonb_build_object('old', jsonb_build_object('container', old.container_uuid, 'bucket', old.bucket_id,
			'name', old.full_file_name));
	end if;
	perform socle.write_fact(tg_argv[0], data::json);
	return null;
end $$;

CREATE TABLE socle.kept_answers (
    key bytea NOT NULL,
    fingerprint bytea NOT NULL,
    kept_at timestamp with time zone DEFAULT now() NOT NULL,
    status smallint NOT NULL,
    headers jsonb NOT NULL,
    body bytea
);

COMMENT ON TABLE socle.kept_answers IS 'answers of the rows API to requests with an Idempotency-Key';

CREATE FUNCTION socle.find_answer(key bytea) RETURNS TABLE(fingerprint bytea, status smallint, headers jsonb, body bytea)
    LANGUAGE sql STABLE SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    BEGIN ATOMIC
 SELECT a.fingerprint,
     a.status,
     a.headers,
     a.body
    FROM socle.kept_answers a
   WHERE ((a.key = find_answer.key) AND (a.kept_at > (now() - '1 day'::interval)));
END;

CREATE FUNCTION socle.has_unplanned_jobs() RETURNS boolean
    LANGUAGE plpgsql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
	if not exists (select from pg_namespace c join pg_namespace s on s.nspowner = c.nspowner where c.nspname = 'cron' and s.nspname = 'socle') then
		return false;
	end if;
	return exists (select from cron.job where next_run_at is null);
end $$;

CREATE FUNCTION socle.is_storage_table_unchanged(altered oid) RETURNS boolean
    LANGUAGE plpgsql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
	current_age constant integer := age(pg_current_xact_id()::xid);
begin
	return altered in (to_regclass('storage.buckets'), to_regclass('storage.objects'), to_regclass('realtime.messages'))
		and exists (
			select from pg_class c where c.oid = altered and c.relrowsecurity and not c.relforcerowsecurity
				and c.relowner = (select r.oid from pg_authid r where r.rolname = session_user)
				and c.relam = (select m.oid from pg_am m where m.amname = 'heap') and c.reloptions is null and c.reltablespace = 0
				and c.relpersistence = 'p' and c.relreplident = 'd' and c.reloftype = 0 and c.relhasindex = (c.relname in ('buckets', 'messages')) and not c.relhasrules)
		and not exists (select from pg_attribute x where x.attrelid = altered and age(x.xmin) <= current_age)
		and not exists (select from pg_attrdef x where x.adrelid = altered and age(x.xmin) <= current_age)
		and not exists (select from pg_constraint x where altered in (x.conrelid, x.confrelid) and age(x.xmin) <= current_age)
		and not exists (select from pg_trigger x where x.tgrelid = altered and age(x.xmin) <= current_age)
		and not exists (select from pg_inherits x where altered in (x.inhrelid, x.inhparent) and age(x.xmin) <= current_age);
end $$;

COMMENT ON FUNCTION socle.is_storage_table_unchanged(altered oid) IS 'reports whether an ALTER TABLE in this transaction has left the table as it was';

CREATE FUNCTION socle.keep_answer(key bytea, fingerprint bytea, status smallint, headers jsonb, body bytea) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
	delete from socle.kept_answers a where a.key in (
		select e.key from socle.kept_answers e where e.kept_at <= now() - interval '1 day'
		order by e.kept_at limit 20 for update skip locked);
	insert into socle.kept_answers as a (key, fingerprint, status, headers, body)
	values (keep_answer.key, keep_answer.fingerprint, keep_answer.status, keep_answer.headers, keep_answer.body)
	on conflict on constraint kept_answers_pkey do update
	set fingerprint = excluded.fingerprint, kept_at = now(), status = excluded.status, headers = excluded.headers, body = excluded.body
	where a.kept_at <= now() - interval '1 day';
	if not found then
		raise unique_violation using message = 'a request with the key has an answer';
	end if;
end $$;

CREATE FUNCTION socle.lend_users() RETURNS event_trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
	users constant oid := to_regclass('auth.users');
begin
	-- Only the text says which table the statement is about. The statement takes the same lock.
	if current_query() ~* '\m(drop|comment\s+on)\s+trigger\M[^;]*\mon\s+"?auth"?\s*\.\s*"?users\M'
		and has_table_privilege(session_user, users, 'trigger')
		and not (select rolsuper from pg_authid where rolname = session_user) then
		lock table auth.users in access exclusive mode;
		update pg_class set relowner = (select oid from pg_authid where rolname = session_user) where oid = users;
	end if;
end $$;

COMMENT ON FUNCTION socle.lend_users() IS 'gives auth.users to the project''s owner, at the start of a statement on its triggers';

CREATE FUNCTION socle.listen(drop_unneeded boolean) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET session_replication_role TO 'replica'
    SET lock_timeout TO '300ms'
    AS $$
declare
	t record;
	trigger_name text;
	wanted boolean;
	present boolean;
begin
	perform socle.create_event_slots();
	for t in select * from socle.fact_triggers loop
		trigger_name := 'socle_fact_' || t.name;
		wanted := exists (select from socle.webhooks w where socle.listening(w) and t.type = any(w.types));
		present := exists (select from pg_trigger where tgrelid = t."table"::regclass and tgname = trigger_name and tgenabled = 'O' and tgisinternal);
		if wanted and not present then
			execute format('create trigger %I after %s on %s for each row when (%s) execute function socle.%I(%L)',
				trigger_name, t.event, t."table", t.condition, t.function, t.type);
			update pg_trigger set tgisinternal = true where tgrelid = t."table"::regclass and tgname = trigger_name;
		elsif present and not wanted and drop_unneeded then
			execute format('drop trigger %I on %s', trigger_name, t."table");
		end if;
	end loop;
end $$;

CREATE TABLE socle.webhooks (
    id uuid DEFAULT gen_random_uuid() NOT NULL,
    name text NOT NULL,
    url text NOT NULL,
    types text[] DEFAULT '{}'::text[] NOT NULL,
    tables jsonb DEFAULT '[]'::jsonb NOT NULL,
    secrets bytea NOT NULL,
    ordered boolean DEFAULT false NOT NULL,
    paused boolean DEFAULT false NOT NULL,
    pause_reason text DEFAULT ''::text NOT NULL,
    paused_at timestamp with time zone,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL,
    queues text[],
    CONSTRAINT webhooks_check CHECK (((paused = (paused_at IS NOT NULL)) AND (paused = (pause_reason <> ''::text)))),
    CONSTRAINT webhooks_pause_reason_check CHECK ((pause_reason = ANY (ARRAY[''::text, 'member'::text, 'failures'::text, 'restore'::text])))
);

COMMENT ON TABLE socle.webhooks IS 'endpoints that are told of changes';

CREATE FUNCTION socle.listening(w socle.webhooks) RETURNS boolean
    LANGUAGE sql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    RETURN ((NOT (w).paused) OR (((w).pause_reason <> 'restore'::text) AND ((w).paused_at > (now() - '1 day'::interval))));

CREATE FUNCTION socle.lock_audit(OUT log text, OUT seq bigint, OUT hash bytea) RETURNS record
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
	if session_user <> current_database() || '_owner' and not (select rolsuper from pg_roles where rolname = session_user) then
		raise insufficient_privilege using message = 'the audit log is written by the platform';
	end if;
	select h.log, h.seq, h.hash into strict log, seq, hash from socle.audit_head h for update;
end $$;

CREATE FUNCTION socle.lock_audit_entries(OUT log text, OUT entries bigint) RETURNS record
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
	if session_user not in (current_database() || '_owner', current_database() || '_auth')
		and not (select rolsuper from pg_roles where rolname = session_user) then
		raise insufficient_privilege using message = 'the audit log is written by the platform';
	end if;
	lock table socle.audit_pending in share row exclusive mode;
	select h.log, h.seq + (select count(*) from socle.audit_pending) into strict log, entries from socle.audit_head h;
end $$;

CREATE FUNCTION socle.migration_fact() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
	perform socle.write_fact(tg_argv[0], json_build_object('version', new.version, 'name', new.name, 'applied_at', new.applied_at,
		'applied_by', new.applied_by));
	return null;
end $$;

CREATE FUNCTION socle.queue_request(method text, url text, params jsonb, headers jsonb, body bytea, timeout_milliseconds integer) RETURNS bigint
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
	request bigint;
begin
	if url is null or octet_length(url) > 8192 then
		raise invalid_parameter_value using message = 'a request has a URL of at most 8192 bytes';
	end if;
	if jsonb_typeof(coalesce(params, '{}')) <> 'object' or jsonb_typeof(coalesce(headers, '{}')) <> 'object' then
		raise invalid_parameter_value using message = 'parameters and headers of a request are JSON objects';
	end if;
	if octet_length(params::text) > 16384 or octet_length(headers::text) > 16384 or octet_length(body) > 1048576 then
		raise program_limit_exceeded using
			message = 'a request has at most 16384 bytes of parameters, as many of headers, and 1048576 of a body';
	end if;

	insert into socle.http_requests as q (method, url, params, headers, body, timeout_milliseconds)
	values (queue_request.method, queue_request.url, coalesce(queue_request.params, '{}'), coalesce(queue_request.headers, '{}'),
		queue_request.body, greatest(1, least(coalesce(queue_request.timeout_milliseconds, 5000), 30000)))
	returning q.id into request;
	-- The oldest one is found by the index, which a count is not.
	if request - (select q.id from socle.http_requests q order by q.id limit 1) >= 100000 then
		raise program_limit_exceeded using message = '100000 requests wait to be sent: a project can have no more',
			hint = 'Send fewer requests, or delete some from net.http_request_queue.';
	end if;
	return request;
end $$;

CREATE FUNCTION socle.record_migration(new_version text, new_name text, new_checksum text, new_applied_by uuid, new_duration_ms double precision) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
	if session_user <> current_database() || '_owner' and not (select rolsuper from pg_roles where rolname = session_user) then
		raise insufficient_privilege using message = 'migrations are recorded by the platform';
	end if;

	insert into socle.applied_migrations as m (version, name, checksum, applied_by, duration_ms)
	values (new_version, new_name, new_checksum, new_applied_by, new_duration_ms)
	on conflict (version) do update
	set name = excluded.name, checksum = excluded.checksum, applied_at = excluded.applied_at, applied_by = excluded.applied_by,
		duration_ms = excluded.duration_ms
	where m.duration_ms is null;
	if not found then
		raise unique_violation using message = 'the migration ' || new_version || ' is applied already';
	end if;
end $$;

CREATE FUNCTION socle.refuse_auth_ddl() RETURNS event_trigger
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
	if (select oid from pg_roles where rolname = current_user and not rolsuper)
		= (select relowner from pg_class where oid = to_regclass('auth.identities')) then
		raise insufficient_privilege using message = 'code that runs as the login of end users cannot change the schema';
	end if;
end $$;

CREATE FUNCTION socle.refuse_extensions() RETURNS event_trigger
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $_$
declare
	allowed constant text := 'autoinc, btree_gin, btree_gist, citext, cube, dict_int, dict_xsyn, earthdistance, fuzzystrmatch, hstore, '
		'insert_username, intagg, intarray, isn, ltree, moddatetime, pg_trgm, pgcrypto, postgis, seg, tablefunc, tcn, tsm_system_rows, '
		'tsm_system_time, unaccent, uuid-ossp, vector';
	refused text;
	stack text;
	found text[];
	installed text;
begin
	if pg_has_role(current_user, 'pg_database_owner', 'usage') then
		return;
	end if;

	get diagnostics stack = pg_context;
	if tg_tag = 'CREATE EXTENSION' and strpos(stack, E'\n') = 0 then
		for found in
			select regexp_matches(coalesce(current_query(), 'extension') collate "C",
				'\mextension\M([ \t\r\n\f\v]+if[ \t\r\n\f\v]+not[ \t\r\n\f\v]+exists[ \t\r\n\f\v]+("[^"]+"|[a-z_][a-z0-9_]*)(?=[ \t\r\n\f\v;]|$))?',
				'gi')
		loop
			installed := case when found[2] like '"%' then btrim(found[2], '"') else lower(found[2] collate "C") end;
			if installed is null then
				exit;
			end if;

			begin
				perform pg_get_object_address('extension', array[installed], '{}');
			exception when undefined_object then
				installed := null;
				exit;
			end;
		end loop;

		if installed is not null then
			return;
		end if;
	end if;

	if tg_tag <> 'CREATE EXTENSION' then
		raise insufficient_privilege using message = 'extensions are installed by the platform';
	end if;

	-- Words of the message only: the text may name others.
	select w.name into refused
	from regexp_matches(coalesce(current_query(), '') collate "C",
		'\mcreate\s+extension\s+(?:if\s+not\s+exists\s+)?("[^"]+"|[a-z_][a-z0-9_]*)', 'gi') m,
		lateral (select case when m[1] like '"%' then btrim(m[1], '"') else lower(m[1] collate "C") end) w (name)
	where w.name <> all (string_to_array(allowed, ', ')) and not exists (select from pg_extension e where e.extname = w.name) limit 1;
	if refused is not null then
		raise insufficient_privilege using message = format('%s is not an extension that projects may install', left(refused, 63)),
			hint = 'These are ' || allowed || '.';
	end if;
	raise insufficient_privilege using message = 'extensions are installed by the platform',
		hint = 'CREATE EXTENSION IF NOT EXISTS installs one as a statement of its own, and so does POST /extensions.';
end $_$;

CREATE FUNCTION socle.refuse_platform_triggers() RETURNS event_trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
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

CREATE FUNCTION socle.refuse_queue_ddl() RETURNS event_trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
	if (select rolsuper from pg_authid where rolname = session_user) then
		return;
	end if;

	perform from pg_event_trigger_ddl_commands() d
	where d.schema_name = 'pgmq'
		and (select n.nspowner from pg_namespace n where n.nspname = 'pgmq') = (
			select n.nspowner from pg_namespace n where n.nspname = 'socle')
		and not case d.classid
			when 'pg_class'::regclass then exists (
				select from pg_class c left join pg_index i on i.indexrelid = c.oid left join pg_class t on t.oid = i.indrelid
				where c.oid = d.objid and (c.relkind in ('r', 'S') and c.relname ~ '^[qa]_'
					or c.relkind = 'i' and c.relname ~ '^([qa]_|archived_at_idx_)' and t.relname ~ '^[qa]_'))
			else d.classid in ('pg_policy'::regclass, 'pg_trigger'::regclass, 'pg_constraint'::regclass, 'pg_attrdef'::regclass)
		end;
	if found then
		raise insufficient_privilege using
			message = 'the schema pgmq belongs to the platform: a project has only tables of queues in it, named q_… and a_…';
	end if;
end $$;

CREATE FUNCTION socle.refuse_references() RETURNS event_trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
	referred text;
begin
	if (select rolsuper from pg_authid where rolname = session_user) then
		return;
	end if;

	-- Comments and privileges depend on nothing.
	if tg_tag not in ('COMMENT', 'GRANT', 'REVOKE') then
		-- Everything here is found by an index, since every DDL statement of the tenant pays for it: what is in a schema
		-- depends on it, a row type belongs to its table, an array type to its element type.
		with schemas as (
			select 'pg_namespace'::regclass as class, oid as id from pg_namespace
			where nspname in ('socle', 'storage', 'forms', 'auth', 'realtime')
				or (nspname in ('cron', 'net', 'supabase_functions', 'vault') and nspowner = (select nspowner from pg_namespace where nspname = 'socle'))
		), inside as materialized (
			select d.classid as class, d.objid as id from schemas s
			join pg_depend d on d.refclassid = s.class and d.refobjid = s.id
		), types as materialized (
			select id from inside where class = 'pg_type'::regclass
			union all
			select c.reltype from inside i join pg_class c on c.oid = i.id where i.class = 'pg_class'::regclass and c.reltype <> 0
		), platform as (
			select class, id from schemas
			union all
			select class, id from inside where class <> 'pg_type'::regclass
				and not (class = 'pg_proc'::regclass
					and id in (to_regproc('auth.uid'), to_regproc('auth.role'), to_regproc('auth.jwt'), to_regproc('auth.email'),
						to_regproc('storage.foldername'), to_regproc('storage.filename'), to_regproc('storage.extension'), to_regproc('realtime.topic'),
						to_regproc('storage.update_updated_at_column')))
			union all
			select 'pg_type'::regclass, id from types
			union all
			select 'pg_type'::regclass, t.typarray from types join pg_type t on t.oid = types.id where t.typarray <> 0
		)
		select pg_describe_object(d.refclassid, d.refobjid, 0) into referred
		from platform p join pg_depend d on d.refclassid = p.class and d.refobjid = p.id
		where age(d.xmin) <= age(pg_current_xact_id()::xid)
			and not (d.refclassid = 'pg_class'::regclass and d.refobjid = to_regclass('auth.users') and (
				d.classid = 'pg_constraint'::regclass and exists (
					select from pg_constraint k where k.oid = d.objid and k.contype = 'f' and k.confrelid = d.refobjid)
				or d.classid = 'pg_trigger'::regclass and exists (
					select from pg_trigger t where t.oid = d.objid and t.tgrelid = d.refobjid)
				or d.classid = 'pg_policy'::regclass
				or d.classid = 'pg_rewrite'::regclass and exists (
					select from pg_rewrite w where w.oid = d.objid and w.ev_class <> d.refobjid)))
			and not (d.refclassid = 'pg_class'::regclass and d.refobjid in (to_regclass('storage.buckets'), to_regclass('storage.objects'))
				and d.classid = 'pg_policy'::regclass and exists (
					select from pg_policy y where y.oid = d.objid
						and y.polrelid in (to_regclass('storage.buckets'), to_regclass('storage.objects'))))
			and not (d.refclassid = 'pg_class'::regclass and d.refobjid = to_regclass('realtime.messages')
				and d.classid = 'pg_policy'::regclass and exists (
					select from pg_policy y where y.oid = d.objid and y.polrelid = d.refobjid))
			and not (d.refclassid = 'pg_proc'::regclass and d.refobjid = to_regproc('supabase_functions.http_request')
				and d.classid = 'pg_trigger'::regclass)
			and not (d.refclassid = 'pg_class'::regclass
				and d.refobjid in (to_regclass('storage.buckets'), to_regclass('storage.objects'), to_regclass('cron.job'))
				and d.classid = 'pg_rewrite'::regclass and exists (
					select from pg_rewrite w where w.oid = d.objid and w.ev_class <> d.refobjid))
		limit 1;
		if found then
			raise insufficient_privilege using message = referred || ' belongs to the platform: nothing can refer to it';
		end if;
	end if;

	if tg_tag not in ('GRANT', 'ALTER DEFAULT PRIVILEGES', 'CREATE SCHEMA', 'CREATE POLICY', 'ALTER POLICY', 'CREATE USER MAPPING') then
		return;
	end if;
	perform from pg_shdepend s
	join pg_authid r on r.oid = s.refobjid
	where s.dbid = (select oid from pg_database where datname = current_database())
		and (tg_tag not in ('CREATE POLICY', 'ALTER POLICY') or s.classid = 'pg_policy'::regclass)
		and s.refclassid = 'pg_authid'::regclass
		and age(s.xmin) <= age(pg_current_xact_id()::xid)
		and r.rolname not in ('anon', 'authenticated', 'service_role', 'socle_reader')
		and not has_database_privilege(r.oid, s.dbid, 'connect');
	if found then
		raise insufficient_privilege using message = 'the role is none of the project''s: name anon, authenticated, service_role, socle_reader or public';
	end if;
end $$;

CREATE FUNCTION socle.refuse_storage_ddl() RETURNS event_trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
	parents constant oid[] := array(
		select inhparent from pg_inherits where inhrelid in ('storage.containers'::regclass, 'storage.files'::regclass))
		|| 'realtime.messages'::regclass::oid;
begin
	if (select rolsuper from pg_authid where rolname = session_user) then
		return;
	end if;

	perform from pg_event_trigger_ddl_commands() d
	where d.command_tag <> 'COMMENT'
		and case d.classid
			when 'pg_class'::regclass then coalesce((select i.indrelid from pg_index i where i.indexrelid = d.objid), d.objid)
			when 'pg_trigger'::regclass then (select t.tgrelid from pg_trigger t where t.oid = d.objid)
			when 'pg_constraint'::regclass then (select k.conrelid from pg_constraint k where k.oid = d.objid)
		end = any(parents)
		and not (d.command_tag = 'ALTER TABLE' and d.classid = 'pg_class'::regclass and socle.is_storage_table_unchanged(d.objid));
	if found then
		raise insufficient_privilege using message = 'storage.buckets, storage.objects and realtime.messages belong to the platform: only their policies can be changed';
	end if;
end $$;

CREATE FUNCTION socle.refuse_storage_drop() RETURNS event_trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
	if (select rolsuper from pg_authid where rolname = session_user) then
		return;
	end if;

	perform from pg_event_trigger_dropped_objects() d
	where d.object_type <> 'policy' and cardinality(d.address_names) > 1 and d.address_names[1] in ('storage', 'realtime');
	if found then
		raise insufficient_privilege using message = 'storage.buckets, storage.objects and realtime.messages belong to the platform: only their policies can be changed';
	end if;
end $$;

CREATE FUNCTION socle.release(idle interval) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET session_replication_role TO 'replica'
    SET lock_timeout TO '300ms'
    AS $$
declare
	t record;
begin
	perform pg_advisory_xact_lock('socle.captures'::regclass::oid::bigint);
	for t in
		select c.relation, g.tgrelid, g.tgname from socle.captures c
		left join pg_trigger g on g.tgname like 'socle\_capture\_%' and g.tgisinternal
			and g.tgrelid in (select c.relation union select relid from pg_partition_tree(c.relation::regclass))
		where c.followed_at < now() - idle and not exists (
			select from socle.webhooks w, jsonb_array_elements(w.tables) n
			where socle.listening(w) and to_regclass(format('%I.%I', n ->> 'schema', n ->> 'table')) = c.relation)
	loop
		if t.tgrelid is not null then
			execute format('drop trigger %I on %s', t.tgname, t.tgrelid::regclass);
		end if;
		delete from socle.captures where relation = t.relation;
	end loop;
end $$;

CREATE FUNCTION socle.remove_events(bytes_limit bigint, kept interval) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET lock_timeout TO '300ms'
    AS $$
declare
	total bigint := (select sum(pg_total_relation_size(inhrelid)) from pg_inherits where inhparent = 'socle.events'::regclass);
	slots constant integer[] := array(
		select s.n from generate_series(0, 9) s(n)
		cross join lateral (select e.xid from socle.events e where e.slot = s.n::smallint order by e.xid desc limit 1) newest
		order by newest.xid);
	slot integer;
	last record;
begin
	foreach slot in array slots loop
		execute format('select at from socle.events_%s order by xid desc, seq desc limit 1', slot) into last;
		continue when last.at >= clock_timestamp() - kept and total <= bytes_limit;
		execute format('lock table socle.events_%s in access exclusive mode', slot);
		execute format('select xid, pg_total_relation_size(tableoid) as size from socle.events_%s order by xid desc limit 1', slot)
			into last;
		insert into socle.events_removed as r (xid) values (last.xid)
		on conflict (single) do update set xid = greatest(r.xid, excluded.xid);
		total := total - last.size;
		execute format('truncate socle.events_%s', slot);
	end loop;
end $$;

CREATE FUNCTION socle.remove_events(bytes_limit bigint) RETURNS void
    LANGUAGE sql
    SET search_path TO 'pg_catalog', 'pg_temp'
    RETURN socle.remove_events(bytes_limit, '1 day'::interval);

CREATE FUNCTION socle.response_fact() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
	perform socle.write_fact(tg_argv[0], json_build_object('id', new.uuid, 'form', new.form_uuid, 'submitted_at', new.submitted_at,
		'answers', new.answers));
	return null;
end $$;

CREATE FUNCTION socle.return_users() RETURNS event_trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
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

COMMENT ON FUNCTION socle.return_users() IS 'takes auth.users back, at the end of the statement';

CREATE FUNCTION socle.session_fact() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
	perform socle.write_fact(tg_argv[0], json_build_object('id', new.user_id, 'session', new.id, 'client', new.oauth_client_id));
	return null;
end $$;

CREATE FUNCTION socle.small_members(r json) RETURNS json
    LANGUAGE sql IMMUTABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    RETURN (SELECT json_object_agg(json_each.key, json_each.value) AS json_object_agg FROM json_each(small_members.r) json_each(key, value) WHERE (octet_length((json_each.value)::text) <= 1024));

CREATE FUNCTION socle.spread_events(kept interval) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET lock_timeout TO '300ms'
    AS $$
declare
	seconds constant bigint := date_part('epoch', kept)::bigint / 8;
	present constant text := (select pg_get_expr(d.adbin, d.adrelid) from pg_attrdef d
		join pg_attribute a on a.attrelid = d.adrelid and a.attnum = d.adnum
		where d.adrelid = 'socle.events'::regclass and a.attname = 'slot');
begin
	if present not like format('%%/ (%s)::double precision%%', seconds) then
		execute format('alter table only socle.events alter column slot
			set default (floor(date_part(''epoch'', clock_timestamp()) / %s)::bigint %% 10)::smallint', seconds);
	end if;
end $$;

CREATE FUNCTION socle.take_audit_entries(most integer) RETURNS TABLE(id bigint, entry text, mac bytea, chained boolean)
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_seqscan TO 'off'
    AS $$
begin
	return query
		delete from socle.audit_pending p
		where p.id in (select q.id from socle.audit_pending q order by q.id limit most)
		returning p.id, p.entry, p.mac, exists (
			select from socle.audit a
			where a.entry::jsonb ->> 'at' = p.entry::jsonb ->> 'at' and a.entry = p.entry);
end $$;

CREATE FUNCTION socle.tell_of_change() RETURNS event_trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
	if exists (select from pg_stat_activity where datname = current_database() and query = 'listen pgrst') then
		perform pg_notify('pgrst', 'reload schema');
	end if;
end $$;

CREATE FUNCTION socle.user_fact() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
	u record;
begin
	if tg_op = 'DELETE' then u := old; else u := new; end if;
	perform socle.write_fact(tg_argv[0], json_build_object('id', u.id, 'email', nullif(u.email, ''), 'phone', nullif(u.phone, ''),
		'is_anonymous', u.is_anonymous, 'created_at', u.created_at));
	return null;
end $$;

CREATE FUNCTION socle.write_audit(new_entry text, new_mac bytea) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_seqscan TO 'off'
    AS $$
declare
	new_key constant text := new_entry::jsonb ->> 'key';
begin
	if session_user not in (current_database() || '_owner', current_database() || '_auth') then
		if not (select rolsuper from pg_roles where rolname = session_user) then
			raise insufficient_privilege using message = 'the audit log is written by the platform';
		end if;
	end if;
	insert into socle.audit_pending (entry, mac, key) values (new_entry, new_mac, new_key);

	-- After the insert: it waits for the transaction that moves an entry with the same key into the chain.
	if new_key is not null then
		if exists (select from socle.audit where entry::jsonb ->> 'key' = new_key) then
			raise unique_violation using constraint = 'audit_pending_key', message = 'the chain has an entry with this key';
		end if;
	end if;
end $$;

CREATE FUNCTION socle.write_fact(type text, data json) RETURNS void
    LANGUAGE sql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
	insert into socle.events (relation, operation, type, record, size, oversized)
	select 0, 'f', type, case when n > 1048576 then socle.small_members(data) else data end, least(n, 1048576), n > 1048576
	from (select octet_length(data::text) as n) t;
$$;

CREATE FUNCTION storage.assign_bucket() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
	-- Without a container the foreign key refuses the file.
	new.bucket_id := coalesce((select c.id from storage.containers c where c.uuid = new.container_uuid), '');
	return new;
end $$;

CREATE FUNCTION storage.bytes_replaced() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
	delete from storage.variants v where v.source_uuid = old.blob_uuid;
	return new;
end $$;

CREATE FUNCTION storage.change_bucket() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
	fixed text;
begin
	if current_user::regrole <> (select c.relowner from pg_class c where c.oid = 'storage.buckets'::regclass) then
		if tg_op = 'DELETE' then
			return old;
		end if;
		return new;
	end if;
	if old.deleting then
		return null;
	end if;

	if tg_op = 'DELETE' then
		perform storage.delete_bucket(old.id);
		return null;
	end if;

	select n.key into fixed
	from jsonb_each(to_jsonb(new)) n
	where n.value is distinct from to_jsonb(old) -> n.key and n.key <> all('{name,public,file_size_limit,allowed_mime_types,avif_autodetection,owner,owner_id,updated_at}')
	order by n.key limit 1;
	if found then
		raise insufficient_privilege using schema = 'storage', table = 'buckets', column = fixed,
			message = format('bucket %s: %s cannot be changed', old.id, fixed);
	end if;

	if new.name is null then
		raise not_null_violation using schema = 'storage', table = 'buckets', column = 'name', message = 'bucket: name must be given';
	end if;
	-- An older release has taken other names.
	new.allowed_mime_types := storage.check_bucket(null, nullif(new.name, old.name), new.file_size_limit, new.allowed_mime_types);
	new.is_public := coalesce(new.public, false);
	new.max_file_size := coalesce(new.file_size_limit, 5368709120);
	new.updated_at := now();
	return new;
end $$;

COMMENT ON FUNCTION storage.change_bucket() IS 'checks what the owner changes of a bucket, and deletes what it deletes';

CREATE FUNCTION storage.check_bucket(id text, name text, file_size_limit bigint, allowed_mime_types text[]) RETURNS text[]
    LANGUAGE plpgsql IMMUTABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $_$
declare
	allowed constant text := '^[A-Za-z0-9_!.*''()&$@=;:+,?-]([A-Za-z0-9_!.*''() &$@=;:+,?-]{0,98}[A-Za-z0-9_!.*''()&$@=;:+,?-])?$';
	reserved constant text[] :=
		'{.,..,authenticated,copy,info,list,list-v2,move,public,sign,upload}';
	token constant text := '[a-z0-9!#$%&''+.^_`|~*-]+';
	clean text[] := '{}';
	field text;
	reason text;
	mime_type text;
begin
	case
		when id collate "C" !~ allowed then
			field := 'id'; reason := format('%L must be a name that Supabase allows', id);
		when name collate "C" !~ allowed then
			field := 'name'; reason := format('%L must be a name that Supabase allows', name);
		when id = any(reserved) then
			field := 'id'; reason := format('%L is a word of the paths of the Storage API: choose another one', id);
		when name = any(reserved) then
			field := 'name'; reason := format('%L is a word of the paths of the Storage API: choose another one', name);
		when file_size_limit not between 1 and 5368709120 then
			field := 'file_size_limit'; reason := 'must be 1 to 5368709120 bytes';
		else
	end case;
	if field is not null then
		raise check_violation using schema = 'storage', table = 'buckets', column = field,
			message = format('bucket: %s %s', field, reason);
	end if;

	foreach mime_type in array coalesce(allowed_mime_types, '{}') loop
		mime_type := lower(btrim(mime_type, E' \t\r\n'));
		if mime_type is null or octet_length(mime_type) > 127 or mime_type collate "C" !~ ('^' || token || '/' || token || '$')
			or mime_type like '*/%' or (split_part(mime_type, '/', 2) like '%*%' and split_part(mime_type, '/', 2) <> '*') then
			raise check_violation using schema = 'storage', table = 'buckets', column = 'allowed_mime_types',
				message = 'bucket: allowed_mime_types must be types such as image/png or image/*';
		end if;
		if mime_type <> all(clean) then
			clean := clean || mime_type;
		end if;
	end loop;
	if cardinality(clean) > 100 then
		raise check_violation using schema = 'storage', table = 'buckets', column = 'allowed_mime_types',
			message = 'bucket: allowed_mime_types must be at most 100 types';
	end if;
	return clean;
end $_$;

COMMENT ON FUNCTION storage.check_bucket(id text, name text, file_size_limit bigint, allowed_mime_types text[]) IS 'refuses what a bucket cannot have, and returns its MIME types in their normal form';

CREATE FUNCTION storage.check_quota(default_files bigint, default_bytes bigint) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
	u storage.usage;
begin
	select * into u from storage.usage;
	if u.files > coalesce(u.max_files, default_files) then
		raise check_violation using constraint = 'usage_files_quota', message = 'too many files';
	elsif u.bytes > coalesce(u.max_bytes, default_bytes) then
		raise check_violation using constraint = 'usage_bytes_quota', message = 'too many bytes';
	end if;
end $$;

COMMENT ON FUNCTION storage.check_quota(default_files bigint, default_bytes bigint) IS 'fails if the project''s files exceed its quota; the transaction has added one, so that no other can before it ends';

CREATE FUNCTION storage.containers_inserted() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
	insert into storage.sorted_blocks (container_uuid, sort, first_text, first_number, first_time, first_uuid, files)
	select c.uuid, k.sort, '', -1, '-infinity', '00000000-0000-0000-0000-000000000000', 0
	from new_containers c cross join storage.sort_keys('', '', 0, now(), now()) k;
	return null;
end $$;

COMMENT ON FUNCTION storage.containers_inserted() IS 'in each order, a container has a first block, before which nothing comes';

CREATE FUNCTION storage.count_files(containers uuid[], files bigint[], bytes bigint[]) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
	-- From here on, changes to a container come one after the other.
	perform from storage.containers c where c.uuid = any(containers) order by c.uuid for no key update;
	update storage.containers c set total_files = c.total_files + d.files, total_size = c.total_size + d.bytes
	from unnest(containers, files, bytes) as d (container, files, bytes) where c.uuid = d.container and (d.files <> 0 or d.bytes <> 0);
end $$;

CREATE FUNCTION storage.count_project(more_files bigint, more_bytes bigint) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
	update storage.usage u set files = u.files + more_files, bytes = u.bytes + more_bytes;
end $$;

CREATE FUNCTION storage.delete_bucket(bucket text) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
	container uuid;
begin
	-- The row lock keeps new files out.
	select c.uuid into container from storage.containers c where c.id = bucket and not c.deleting for update;
	if exists (select from storage.files f where f.container_uuid = container) then
		raise foreign_key_violation using schema = 'storage', table = 'buckets', column = 'id',
			message = format('bucket %s has files: delete them first', bucket);
	end if;
	delete from storage.containers c where c.uuid = container;
end $$;

CREATE FUNCTION storage.extension(name text) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN reverse(split_part(reverse((string_to_array(name, '/'::text))[cardinality(string_to_array(name, '/'::text))]), '.'::text, 1));

CREATE FUNCTION storage.filename(name text) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN (string_to_array(name, '/'::text))[cardinality(string_to_array(name, '/'::text))];

CREATE FUNCTION storage.files_deleted() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
	insert into storage.sorted_pending (container_uuid, change, full_file_name, mime_type, size, created_at, updated_at, file_uuid)
	select f.container_uuid, -1, f.full_file_name, f.mime_type, f.size, f.created_at, f.updated_at, f.uuid
	from old_files f where exists (select from storage.containers c where c.uuid = f.container_uuid);
	with d as (
		select f.container_uuid, count(*) as files, sum(f.size)::bigint as bytes from old_files f group by f.container_uuid
	), locked as materialized (
		select c.uuid from storage.containers c where c.uuid in (select d.container_uuid from d) order by c.uuid for no key update
	)
	update storage.containers c
	set total_files = c.total_files - d.files, total_size = c.total_size - d.bytes, pending_changes = c.pending_changes + d.files
	from d join locked l on l.uuid = d.container_uuid where c.uuid = d.container_uuid;
	-- Of a deleted container too, which has no row any more.
	perform storage.count_project(-count(*), -sum(size)::bigint) from old_files having count(*) > 0;
	return null;
end $$;

CREATE FUNCTION storage.files_inserted() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
	changed record;
begin
	insert into storage.sorted_pending (container_uuid, change, full_file_name, mime_type, size, created_at, updated_at, file_uuid)
	select f.container_uuid, 1, f.full_file_name, f.mime_type, f.size, f.created_at, f.updated_at, f.uuid from new_files f;
	-- From here on, changes to a container come one after the other.
	for changed in
		with d as (
			select f.container_uuid, count(*) as files, sum(f.size)::bigint as bytes from new_files f group by f.container_uuid
		), locked as materialized (
			select c.uuid from storage.containers c where c.uuid in (select d.container_uuid from d) order by c.uuid for no key update
		)
		update storage.containers c
		set total_files = c.total_files + d.files, total_size = c.total_size + d.bytes, pending_changes = c.pending_changes + d.files
		from d join locked l on l.uuid = d.container_uuid where c.uuid = d.container_uuid
		returning d.files, d.bytes
	loop
		update storage.usage u set files = u.files + changed.files, bytes = u.bytes + changed.bytes;
	end loop;
	return null;
end $$;

CREATE FUNCTION storage.files_updated() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
	insert into storage.sorted_pending (container_uuid, change, full_file_name, mime_type, size, created_at, updated_at, file_uuid)
	select m.container_uuid, m.change, m.full_file_name, m.mime_type, m.size, m.created_at, m.updated_at, m.uuid
	from (
		select -1 as change, gone.* from (
			select o.container_uuid, o.full_file_name, o.mime_type, o.size, o.created_at, o.updated_at, o.uuid from old_files o
			except select n.container_uuid, n.full_file_name, n.mime_type, n.size, n.created_at, n.updated_at, n.uuid from new_files n
		) gone
		union all
		select 1, come.* from (
			select n.container_uuid, n.full_file_name, n.mime_type, n.size, n.created_at, n.updated_at, n.uuid from new_files n
			except select o.container_uuid, o.full_file_name, o.mime_type, o.size, o.created_at, o.updated_at, o.uuid from old_files o
		) come
	) m;
	with d as (
		select c.container_uuid, sum(c.files)::bigint as files, sum(c.bytes)::bigint as bytes, count(*) as changes
		from (select container_uuid, -1 as files, -size as bytes from old_files union all select container_uuid, 1, size from new_files) c
		group by c.container_uuid
	), locked as materialized (
		select c.uuid from storage.containers c where c.uuid in (select d.container_uuid from d) order by c.uuid for no key update
	)
	update storage.containers c
	set total_files = c.total_files + d.files, total_size = c.total_size + d.bytes, pending_changes = c.pending_changes + d.changes
	from d join locked l on l.uuid = d.container_uuid where c.uuid = d.container_uuid;
	perform storage.count_project(0, sum(d.bytes)::bigint)
	from (select -size as bytes from old_files union all select size from new_files) d having sum(d.bytes) <> 0;
	return null;
end $$;

CREATE FUNCTION storage.foldername(name text) RETURNS text[]
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN (string_to_array(name, '/'::text))[1:(cardinality(string_to_array(name, '/'::text)) - 1)];

CREATE FUNCTION storage.insert_bucket() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
	if current_user::regrole <> (select c.relowner from pg_class c where c.oid = tg_relid) then
		new.public := new.is_public;
		new.file_size_limit := new.max_file_size;
		return new;
	end if;
	perform storage.put_bucket(new, current_setting('storage.upsert', true) = 'on');
	return null;
end $$;

COMMENT ON FUNCTION storage.insert_bucket() IS 'creates the container of a bucket that the owner inserts, instead of a row';

CREATE FUNCTION storage.name_bucket() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
	if new.deleting or exists (select from storage.containers c where c.id = new.name) then
		new.id := new.uuid::text;
	else
		new.id := new.name;
	end if;
	return new;
end $$;

COMMENT ON FUNCTION storage.name_bucket() IS 'gives a container its id as a bucket, and takes it from one in deletion';

CREATE FUNCTION storage.note_upsert() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
	if current_user::regrole = (select c.relowner from pg_class c where c.oid = tg_relid) then
		perform set_config('storage.upsert', case tg_op when 'UPDATE' then 'on' else 'off' end, true);
	end if;
	return null;
end $$;

CREATE FUNCTION storage.object_metadata(mime_type text, size bigint, sha256 bytea, cache_control text) RETURNS jsonb
    LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
	return jsonb_build_object('eTag', '"' || encode(substr(sha256, 1, 16), 'hex') || '"', 'size', size, 'mimetype', mime_type,
		'cacheControl', coalesce(cache_control, 'no-cache'));
end $$;

CREATE FUNCTION storage.parts_deleted() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
	insert into storage.discarded (blob_uuid) select blob_uuid from old_parts;
	return null;
end $$;

CREATE FUNCTION storage.place_changes() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
	perform storage.place_pending(new.uuid);
	return null;
end $$;

COMMENT ON FUNCTION storage.place_changes() IS 'places the noted changes of a container, at the end of the statement that noted the last of them';

CREATE FUNCTION storage.place_keys(containers uuid[], sorts text[], texts text[], numbers bigint[], times timestamp with time zone[], ids uuid[], sign integer) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
	block storage.sorted_blocks;
begin
	for block in
		update storage.sorted_blocks b set files = b.files + sign * d.files
		from (
			select f.container, f.sort, b.first_text, b.first_number, b.first_time, b.first_uuid, count(*) as files
			from unnest(containers, sorts, texts, numbers, times, ids) as f (container, sort, in_text, in_number, in_time, uuid)
			cross join lateral (
				select b.first_text, b.first_number, b.first_time, b.first_uuid from storage.sorted_blocks b
				where b.container_uuid = f.container and b.sort = f.sort
				  and (b.first_text, b.first_number, b.first_time, b.first_uuid) <= (f.in_text, f.in_number, f.in_time, f.uuid)
				order by b.first_text desc, b.first_number desc, b.first_time desc, b.first_uuid desc limit 1
			) b
			group by f.container, f.sort, b.first_text, b.first_number, b.first_time, b.first_uuid
		) d
		where b.container_uuid = d.container and b.sort = d.sort
		  and (b.first_text, b.first_number, b.first_time, b.first_uuid) = (d.first_text, d.first_number, d.first_time, d.first_uuid)
		returning b.*
	loop
		if block.files > 2000 then
			perform storage.split_sorted(block);
		elsif block.files <= 0 and block.first_number > -1 then
			delete from storage.sorted_blocks b
			where b.container_uuid = block.container_uuid and b.sort = block.sort
			  and (b.first_text, b.first_number, b.first_time, b.first_uuid) = (block.first_text, block.first_number, block.first_time, block.first_uuid);
		end if;
	end loop;
end $$;

CREATE FUNCTION storage.place_pending(container uuid) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
	placed record;
begin
	-- No change of the container's files is in progress, and all changes of the caller's statement are noted: a block of too
	-- many files counts what it sees.
	perform from storage.containers c where c.uuid = container for no key update;

	-- A file that came and went counts for nothing. Removals come first, since a block of too many files is counted anew.
	for placed in
		with gone as (
			delete from storage.sorted_pending p where p.container_uuid = container returning p.*
		), keys as (
			select k.sort, k.in_text, k.in_number, k.in_time, g.file_uuid, sum(g.change)::integer as change
			from gone g cross join lateral storage.sort_keys(g.full_file_name, g.mime_type, g.size, g.created_at, g.updated_at) k
			group by k.sort, k.in_text, k.in_number, k.in_time, g.file_uuid having sum(g.change) <> 0
		)
		select k.change, array_agg(container) as containers, array_agg(k.sort) as sorts, array_agg(k.in_text) as texts,
		       array_agg(k.in_number) as numbers, array_agg(k.in_time) as times, array_agg(k.file_uuid) as files
		from keys k group by k.change order by k.change
	loop
		perform storage.place_keys(placed.containers, placed.sorts, placed.texts, placed.numbers, placed.times, placed.files, placed.change);
	end loop;
	update storage.containers c set pending_changes = 0 where c.uuid = container;
end $$;

COMMENT ON FUNCTION storage.place_pending(container uuid) IS 'counts the noted changes of a container in its blocks';

CREATE TABLE storage.buckets (
    id text COLLATE pg_catalog."C",
    name text COLLATE pg_catalog."C",
    owner uuid,
    created_at timestamp with time zone,
    updated_at timestamp with time zone,
    public boolean,
    avif_autodetection boolean,
    file_size_limit bigint,
    allowed_mime_types text[],
    owner_id text,
    type text,
    uuid uuid,
    is_public boolean,
    max_file_size bigint,
    deleting boolean,
    CONSTRAINT storage_api_only CHECK (false) NO INHERIT
);

COMMENT ON TABLE storage.buckets IS 'has no rows of its own: it lends its policies to storage.containers';

CREATE FUNCTION storage.put_bucket(bucket storage.buckets, upsert boolean) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
	clean text[];
	container uuid;
	stamp constant text := lpad(to_hex(floor(extract(epoch from clock_timestamp()) * 1000)::bigint), 12, '0');
	nobody constant uuid := '00000000-0000-0000-0000-000000000000';
begin
	if bucket.id is null then
		raise not_null_violation using schema = 'storage', table = 'buckets', column = 'id', message = 'bucket: id must be given';
	end if;
	bucket.name := coalesce(bucket.name, bucket.id);
	clean := storage.check_bucket(bucket.id, bucket.name, bucket.file_size_limit, bucket.allowed_mime_types);
	if coalesce(bucket.type, 'STANDARD') <> 'STANDARD' then
		raise check_violation using schema = 'storage', table = 'buckets', column = 'type',
			message = format('bucket %s: type must be STANDARD', bucket.id);
	end if;
	if coalesce(bucket.uuid::text, bucket.is_public::text, bucket.max_file_size::text, bucket.deleting::text) is not null then
		raise insufficient_privilege using schema = 'storage', table = 'buckets',
			message = 'uuid, is_public, max_file_size and deleting belong to the platform: set public and file_size_limit';
	end if;

	select c.uuid into container from storage.containers c where c.id = bucket.id for update;
	if container is null then
		insert into storage.containers (uuid, id, name, is_public, max_file_size, allowed_mime_types, owner, owner_id,
			avif_autodetection, created_at, created_by, updated_by)
		values (overlay(overlay(gen_random_uuid()::text placing left(stamp, 8) || '-' || right(stamp, 4) from 1) placing '7' from 15)::uuid,
			bucket.id, bucket.name, coalesce(bucket.public, false), coalesce(bucket.file_size_limit, 5368709120), clean, bucket.owner,
			coalesce(bucket.owner_id, bucket.owner::text), coalesce(bucket.avif_autodetection, false),
			coalesce(bucket.created_at, now()), nobody, nobody);
	elsif upsert then
		update storage.containers c set name = bucket.name, is_public = coalesce(bucket.public, c.is_public),
			max_file_size = coalesce(bucket.file_size_limit, c.max_file_size),
			allowed_mime_types = case when bucket.allowed_mime_types is null then c.allowed_mime_types else clean end,
			avif_autodetection = coalesce(bucket.avif_autodetection, c.avif_autodetection), updated_at = now()
		where c.uuid = container;
		raise notice 'bucket % exists: it has the values of this INSERT now', bucket.id;
	else
		raise notice 'bucket % exists: it is unchanged', bucket.id;
	end if;
end $$;

CREATE FUNCTION storage.refuse_bucket_changes() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
	if current_user::regrole = (select c.relowner from pg_class c where c.oid = tg_relid) then
		return null; -- the owner's, see storage.change_bucket
	end if;

	raise insufficient_privilege using constraint = 'storage_api_only',
		message = 'buckets and objects are changed by the Storage API only',
		detail = (select coalesce(json_agg(json_build_object('uuid', c.uuid, 'name', c.id, 'updated_at', c.updated_at)), '[]')
			from (select * from changed limit 1000) c);
end $$;

COMMENT ON FUNCTION storage.refuse_bucket_changes() IS 'ends a change that the policies allow, and names the buckets that it found';

CREATE FUNCTION storage.refuse_change() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
	-- The owner's, which storage.delete_bucket carries out.
	if tg_level = 'ROW' and current_user::regrole = (select c.relowner from pg_class c where c.oid = tg_relid) then
		return old;
	end if;
	if tg_op = 'DELETE' and tg_level = 'STATEMENT' and current_user::regrole = (select c.relowner from pg_class c where c.oid = tg_relid) then
		return null;
	end if;

	raise insufficient_privilege using constraint = 'storage_api_only',
		message = 'buckets and objects are changed by the Storage API only',
		detail = case when tg_level = 'ROW' then json_build_array(json_build_object('uuid', old.uuid, 'name', old.id,
			'updated_at', old.updated_at))::text else '[]' end;
end $$;

COMMENT ON FUNCTION storage.refuse_change() IS 'ends a change that the policies allow';

CREATE FUNCTION storage.refuse_changes() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
	raise insufficient_privilege using constraint = 'storage_api_only',
		message = 'buckets and objects are changed by the Storage API only',
		detail = (select coalesce(json_agg(json_build_object('uuid', c.uuid, 'version', c.version, 'name', c.full_file_name,
			'updated_at', c.updated_at)), '[]') from (select * from changed limit 1000) c);
end $$;

COMMENT ON FUNCTION storage.refuse_changes() IS 'ends a change that the policies allow, and names the objects that it found';

CREATE FUNCTION storage.sort_keys(full_file_name text, mime_type text, size bigint, created_at timestamp with time zone, updated_at timestamp with time zone) RETURNS TABLE(sort text, in_text text, in_number bigint, in_time timestamp with time zone)
    LANGUAGE sql IMMUTABLE
    AS $$
	values ('full_file_name', full_file_name, 0::bigint, '-infinity'::timestamptz), ('mime_type', mime_type, 0, '-infinity'),
	       ('size', '', size, '-infinity'), ('created_at', '', 0, created_at), ('updated_at', '', 0, updated_at)
$$;

COMMENT ON FUNCTION storage.sort_keys(full_file_name text, mime_type text, size bigint, created_at timestamp with time zone, updated_at timestamp with time zone) IS 'where a file stands in each order';

CREATE TABLE storage.sorted_blocks (
    container_uuid uuid NOT NULL,
    sort text NOT NULL COLLATE pg_catalog."C",
    first_text text NOT NULL COLLATE pg_catalog."C",
    first_number bigint NOT NULL,
    first_time timestamp with time zone NOT NULL,
    first_uuid uuid NOT NULL,
    files bigint NOT NULL
);

COMMENT ON TABLE storage.sorted_blocks IS 'how many files of a container, in the order of a column and of uuid, there are from here up to the next block; so that a page far behind is found without counting to it';

COMMENT ON COLUMN storage.sorted_blocks.sort IS 'a column of storage.files; its value stands in the one of first_text, first_number and first_time that has its type';

CREATE FUNCTION storage.split_sorted(block storage.sorted_blocks) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $_$
declare
	behind storage.sorted_blocks;
	typed text := case when block.sort in ('full_file_name', 'mime_type') then 'first_text' when block.sort = 'size' then 'first_number' else 'first_time' end;
begin
	select b.* into behind from storage.sorted_blocks b
	where b.container_uuid = block.container_uuid and b.sort = block.sort
	  and (b.first_text, b.first_number, b.first_time, b.first_uuid) > (block.first_text, block.first_number, block.first_time, block.first_uuid)
	order by b.first_text, b.first_number, b.first_time, b.first_uuid limit 1;
	execute format($sql$
		insert into storage.sorted_blocks as b (container_uuid, sort, first_text, first_number, first_time, first_uuid, files)
		select ($1).container_uuid, ($1).sort,
		       case part.chunk when 0 then ($1).first_text else k.in_text end, case part.chunk when 0 then ($1).first_number else k.in_number end,
		       case part.chunk when 0 then ($1).first_time else k.in_time end, case part.chunk when 0 then ($1).first_uuid else part.uuid end, part.files
		from (
			select distinct on (f.chunk) f.chunk, f.uuid, count(*) over (partition by f.chunk) as files
			from (
				select f.%1$I, f.uuid, (row_number() over (order by f.%1$I, f.uuid) - 1) / 1000 as chunk
				from storage.files f
				where f.container_uuid = ($1).container_uuid and (f.%1$I, f.uuid) >= (($1).%2$I, ($1).first_uuid)
				  and (($2).first_uuid is null or (f.%1$I, f.uuid) < (($2).%2$I, ($2).first_uuid))
			) f
			order by f.chunk, f.%1$I, f.uuid
		) part
		join storage.files f on f.uuid = part.uuid
		cross join lateral storage.sort_keys(f.full_file_name, f.mime_type, f.size, f.created_at, f.updated_at) k
		where k.sort = ($1).sort
		on conflict (container_uuid, sort, first_text, first_number, first_time, first_uuid) do update set files = excluded.files
	$sql$, block.sort, typed) using block, behind;
end $_$;

COMMENT ON FUNCTION storage.split_sorted(block storage.sorted_blocks) IS 'counts a block anew, in blocks of 1000 files';

CREATE FUNCTION storage.sync_bucket() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
	new.public := new.is_public;
	new.file_size_limit := new.max_file_size;
	return new;
end $$;

COMMENT ON FUNCTION storage.sync_bucket() IS 'computes the columns of Supabase from those of the platform';

CREATE FUNCTION storage.update_updated_at_column() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
	new.updated_at := now();
	return new;
end $$;

COMMENT ON FUNCTION storage.update_updated_at_column() IS 'sets updated_at, for triggers of the project''s own tables';

CREATE FUNCTION storage.variant_deleted() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
	insert into storage.discarded (blob_uuid) values (old.blob_uuid);
	return null;
end $$;

CREATE TABLE auth.attempts (
    key bytea NOT NULL,
    count integer NOT NULL,
    resets_at timestamp with time zone NOT NULL
);

COMMENT ON TABLE auth.attempts IS 'counts of attempts for rate limits';

CREATE TABLE auth.audit_log_entries (
    instance_id uuid,
    id uuid NOT NULL,
    payload json,
    created_at timestamp with time zone,
    ip_address text DEFAULT ''::text NOT NULL
);

CREATE TABLE auth.flow_state (
    id uuid NOT NULL,
    user_id uuid,
    code_challenge_method text NOT NULL,
    code_challenge text NOT NULL,
    provider_type text NOT NULL,
    authentication_method text NOT NULL,
    auth_code_issued_at timestamp with time zone,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL,
    provider_access_token bytea,
    provider_refresh_token bytea,
    CONSTRAINT flow_state_method CHECK ((code_challenge_method = ANY (ARRAY['s256'::text, 'plain'::text])))
);

COMMENT ON COLUMN auth.flow_state.auth_code_issued_at IS 'null until the code is issued, which is a MAC of the id';

COMMENT ON COLUMN auth.flow_state.provider_access_token IS 'sealed under a key of the project, until the code is exchanged';

COMMENT ON COLUMN auth.flow_state.provider_refresh_token IS 'like provider_access_token';

CREATE TABLE auth.identities (
    provider_id text NOT NULL,
    user_id uuid NOT NULL,
    identity_data jsonb NOT NULL,
    provider text NOT NULL,
    last_sign_in_at timestamp with time zone,
    created_at timestamp with time zone,
    updated_at timestamp with time zone,
    email text GENERATED ALWAYS AS (lower((identity_data ->> 'email'::text))) STORED,
    id uuid DEFAULT gen_random_uuid() NOT NULL
);

CREATE TABLE auth.mails (
    id uuid NOT NULL,
    recipient text NOT NULL,
    kind text NOT NULL,
    subject text NOT NULL,
    html text NOT NULL,
    body text NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    error text DEFAULT ''::text NOT NULL
);

COMMENT ON TABLE auth.mails IS 'messages that were not sent: for lack of a server, or without their text, since it failed; the newest ones only';

CREATE TABLE auth.mfa_amr_claims (
    session_id uuid NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL,
    authentication_method text NOT NULL,
    id uuid DEFAULT gen_random_uuid() NOT NULL
);

CREATE TABLE auth.mfa_challenges (
    id uuid NOT NULL,
    factor_id uuid NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    verified_at timestamp with time zone,
    ip_address inet NOT NULL
);

CREATE TABLE auth.mfa_factors (
    id uuid NOT NULL,
    user_id uuid NOT NULL,
    friendly_name text,
    factor_type text NOT NULL,
    status text NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL,
    secret text,
    phone text,
    last_challenged_at timestamp with time zone,
    last_step bigint DEFAULT 0 NOT NULL,
    CONSTRAINT mfa_factors_status CHECK ((status = ANY (ARRAY['unverified'::text, 'verified'::text]))),
    CONSTRAINT mfa_factors_type CHECK ((factor_type = ANY (ARRAY['totp'::text, 'phone'::text, 'webauthn'::text])))
);

COMMENT ON COLUMN auth.mfa_factors.secret IS 'sealed under a key of the project, in base64';

COMMENT ON COLUMN auth.mfa_factors.last_step IS 'time step of the last code that was used';

CREATE TABLE auth.mfa_recovery_codes (
    user_id uuid NOT NULL,
    hash bytea NOT NULL
);

COMMENT ON COLUMN auth.mfa_recovery_codes.hash IS 'MAC of an unused code under a key of the user';

CREATE TABLE auth.oauth_authorizations (
    id uuid NOT NULL,
    client_id uuid NOT NULL,
    user_id uuid,
    redirect_uri text NOT NULL,
    scope text NOT NULL,
    state text DEFAULT ''::text NOT NULL,
    nonce text DEFAULT ''::text NOT NULL,
    resource text DEFAULT ''::text NOT NULL,
    code_challenge text NOT NULL,
    ask boolean DEFAULT false NOT NULL,
    status text DEFAULT 'pending'::text NOT NULL,
    aal text DEFAULT 'aal1'::text NOT NULL,
    methods jsonb DEFAULT '[]'::jsonb NOT NULL,
    session_id uuid,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    approved_at timestamp with time zone,
    CONSTRAINT oauth_authorizations_status CHECK ((status = ANY (ARRAY['pending'::text, 'approved'::text, 'denied'::text, 'spent'::text])))
);

COMMENT ON TABLE auth.oauth_authorizations IS 'requests of OAuth clients; the code of an approved one is a MAC of the id, and stored nowhere';

COMMENT ON COLUMN auth.oauth_authorizations.ask IS 'the client wants the user to be asked again';

COMMENT ON COLUMN auth.oauth_authorizations.methods IS 'by which the user who approved was authenticated';

COMMENT ON COLUMN auth.oauth_authorizations.session_id IS 'opened by the code, ended by its second use';

CREATE TABLE auth.oauth_clients (
    id uuid NOT NULL,
    client_secret_hash bytea,
    registration_type text NOT NULL,
    client_type text NOT NULL,
    token_endpoint_auth_method text NOT NULL,
    redirect_uris text[] NOT NULL,
    grant_types text[] NOT NULL,
    client_name text DEFAULT ''::text NOT NULL,
    client_uri text DEFAULT ''::text NOT NULL,
    logo_uri text DEFAULT ''::text NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT oauth_clients_auth_method CHECK ((token_endpoint_auth_method = ANY (ARRAY['none'::text, 'client_secret_basic'::text, 'client_secret_post'::text]))),
    CONSTRAINT oauth_clients_client_type CHECK ((client_type = ANY (ARRAY['public'::text, 'confidential'::text]))),
    CONSTRAINT oauth_clients_registration_type CHECK ((registration_type = ANY (ARRAY['manual'::text, 'dynamic'::text]))),
    CONSTRAINT oauth_clients_secret CHECK (((client_type = 'confidential'::text) = (client_secret_hash IS NOT NULL)))
);

COMMENT ON COLUMN auth.oauth_clients.client_secret_hash IS 'SHA-256 of a random secret; null of a public client';

CREATE TABLE auth.oauth_consents (
    user_id uuid NOT NULL,
    client_id uuid NOT NULL,
    scopes text[] NOT NULL,
    granted_at timestamp with time zone DEFAULT now() NOT NULL
);

CREATE TABLE auth.one_time_tokens (
    id uuid NOT NULL,
    user_id uuid NOT NULL,
    token_type text NOT NULL,
    relates_to text NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL,
    attempts integer DEFAULT 0 NOT NULL,
    flow_state_id uuid,
    verification_type text NOT NULL,
    CONSTRAINT one_time_tokens_type CHECK ((token_type = ANY (ARRAY['confirmation_token'::text, 'reauthentication_token'::text, 'recovery_token'::text, 'email_change_token_new'::text, 'email_change_token_current'::text, 'phone_change_token'::text])))
);

COMMENT ON TABLE auth.one_time_tokens IS 'the token in a link and the six digits are MACs of the id, and stored nowhere';

COMMENT ON COLUMN auth.one_time_tokens.attempts IS 'wrong codes so far';

COMMENT ON COLUMN auth.one_time_tokens.verification_type IS 'of the mail that the token was sent in';

CREATE TABLE auth.sessions (
    id uuid NOT NULL,
    user_id uuid NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL,
    factor_id uuid,
    aal text DEFAULT 'aal1'::text NOT NULL,
    not_after timestamp with time zone,
    refreshed_at timestamp with time zone,
    user_agent text,
    ip inet,
    tag text,
    refresh_token_counter bigint DEFAULT 0 NOT NULL,
    oauth_client_id uuid,
    scopes text,
    CONSTRAINT sessions_aal CHECK ((aal = ANY (ARRAY['aal1'::text, 'aal2'::text, 'aal3'::text])))
);

COMMENT ON COLUMN auth.sessions.refresh_token_counter IS 'generation of the valid refresh token; the token itself is a MAC of session and generation, and stored nowhere';

COMMENT ON COLUMN auth.sessions.oauth_client_id IS 'OAuth client that has the tokens; null of the application itself';

CREATE TABLE auth.sign_ups (
    id uuid NOT NULL,
    user_id uuid NOT NULL,
    relates_to text NOT NULL,
    verification_type text NOT NULL,
    created_user boolean NOT NULL,
    encrypted_password text,
    raw_user_meta_data jsonb NOT NULL,
    flow_state_id uuid,
    attempts integer DEFAULT 0 NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL
);

COMMENT ON TABLE auth.sign_ups IS 'like one_time_tokens, but several of a user, until the first confirmation';

COMMENT ON COLUMN auth.sign_ups.created_user IS 'the row of the user has what came with the request';

COMMENT ON COLUMN auth.sign_ups.encrypted_password IS 'reference to auth.passwords';

CREATE TABLE auth.spent_flows (
    id uuid NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL
);

COMMENT ON TABLE auth.spent_flows IS 'sign-ins with identity providers that were completed, and links to add an identity that were opened: valid once';

CREATE TABLE auth.webauthn_challenges (
    id uuid NOT NULL,
    user_id uuid,
    challenge_type text NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT webauthn_challenges_type CHECK ((challenge_type = ANY (ARRAY['registration'::text, 'authentication'::text])))
);

COMMENT ON TABLE auth.webauthn_challenges IS 'challenges of passkeys; the challenge itself is a MAC of the id, and stored nowhere';

CREATE TABLE auth.webauthn_credentials (
    id uuid NOT NULL,
    user_id uuid NOT NULL,
    factor_id uuid,
    credential_id bytea NOT NULL,
    public_key bytea NOT NULL,
    aaguid uuid,
    sign_count bigint DEFAULT 0 NOT NULL,
    transports text[] DEFAULT '{}'::text[] NOT NULL,
    backup_eligible boolean DEFAULT false NOT NULL,
    backed_up boolean DEFAULT false NOT NULL,
    friendly_name text DEFAULT ''::text NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL,
    last_used_at timestamp with time zone
);

COMMENT ON COLUMN auth.webauthn_credentials.factor_id IS 'second factor that the credential belongs to; null of a passkey';

COMMENT ON COLUMN auth.webauthn_credentials.public_key IS 'in COSE';

CREATE TABLE forms.definitions (
    form_uuid uuid NOT NULL,
    version integer NOT NULL,
    fields jsonb NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT definitions_fields CHECK ((jsonb_typeof(fields) = 'array'::text))
);

COMMENT ON TABLE forms.definitions IS 'the fields of a form as they were when someone answered; never changed';

CREATE TABLE forms.fields (
    uuid uuid NOT NULL,
    form_uuid uuid NOT NULL,
    "position" integer NOT NULL,
    label text NOT NULL,
    type text NOT NULL,
    description text,
    is_required boolean DEFAULT false NOT NULL,
    default_value text,
    options json,
    pattern text,
    min_length bigint,
    max_length bigint,
    min_value bigint,
    max_value bigint,
    date_format text,
    start_date text,
    end_date text,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL,
    name text COLLATE pg_catalog."C",
    CONSTRAINT fields_options CHECK ((json_typeof(options) = 'array'::text))
);

COMMENT ON COLUMN forms.fields."position" IS 'order in the form, from 1, with gaps';

COMMENT ON COLUMN forms.fields.options IS 'choices, an array of strings';

COMMENT ON COLUMN forms.fields.start_date IS 'earliest date, time or date and time, in ISO 8601 whatever date_format is';

COMMENT ON COLUMN forms.fields.end_date IS 'latest, written like start_date';

COMMENT ON COLUMN forms.fields.name IS 'name of the input in HTML forms, beside the UUID';

CREATE TABLE forms.forms (
    uuid uuid NOT NULL,
    name text NOT NULL,
    description text,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    created_by uuid NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL,
    updated_by uuid NOT NULL,
    state text DEFAULT 'draft'::text NOT NULL,
    opens_at timestamp with time zone,
    closes_at timestamp with time zone,
    max_responses bigint,
    success_message text,
    honeypot text,
    container_uuid uuid,
    link text COLLATE pg_catalog."C",
    version integer DEFAULT 1 NOT NULL,
    total_responses bigint DEFAULT 0 NOT NULL,
    blocked_responses bigint DEFAULT 0 NOT NULL,
    redirect_url text,
    notify_emails text[] DEFAULT '{}'::text[] NOT NULL,
    embed_origins text[] DEFAULT '{}'::text[] NOT NULL,
    color text,
    logo_uuid uuid,
    CONSTRAINT forms_max_responses CHECK ((max_responses >= 1)),
    CONSTRAINT forms_state CHECK ((state = ANY (ARRAY['draft'::text, 'open'::text, 'closed'::text]))),
    CONSTRAINT forms_times CHECK ((opens_at < closes_at))
);

COMMENT ON TABLE forms.forms IS 'the platform database knows in which project a form lives';

COMMENT ON COLUMN forms.forms.created_by IS 'a user of the platform database';

COMMENT ON COLUMN forms.forms.honeypot IS 'name of an input that people do not see: whoever fills it in is a machine';

COMMENT ON COLUMN forms.forms.container_uuid IS 'where the files of answers go';

COMMENT ON COLUMN forms.forms.link IS 'what opens the form to whoever knows it; null while the public link is off';

COMMENT ON COLUMN forms.forms.version IS 'of the fields: each change of them makes a new one';

COMMENT ON COLUMN forms.forms.total_responses IS 'complete ones; counted under the row''s lock, so that a maximum holds';

COMMENT ON COLUMN forms.forms.blocked_responses IS 'submissions of which nothing was kept since the honeypot was filled in';

COMMENT ON COLUMN forms.forms.redirect_url IS 'page after a response by an HTML form; null: a page of the server';

COMMENT ON COLUMN forms.forms.notify_emails IS 'addresses that get a mail about new responses';

COMMENT ON COLUMN forms.forms.embed_origins IS 'origins whose pages may show the form''s page in a frame';

COMMENT ON COLUMN forms.forms.color IS 'accent of the page, #rrggbb';

CREATE TABLE forms.notifications (
    response_uuid uuid NOT NULL,
    form_uuid uuid NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL
);

COMMENT ON TABLE forms.notifications IS 'complete responses about which no mail was queued yet';

CREATE TABLE forms.recipients (
    email text NOT NULL,
    confirmed_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT recipients_folded CHECK ((email = lower(email)))
);

COMMENT ON TABLE forms.recipients IS 'addresses that were confirmed by a mailed link, or belong to a member';

CREATE TABLE forms.responses (
    uuid uuid NOT NULL,
    form_uuid uuid NOT NULL,
    version integer NOT NULL,
    state text NOT NULL,
    answers jsonb NOT NULL,
    token_hash bytea,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL,
    submitted_at timestamp with time zone,
    expires_at timestamp with time zone,
    CONSTRAINT responses_answers CHECK ((jsonb_typeof(answers) = 'object'::text)),
    CONSTRAINT responses_complete CHECK ((((state = 'complete'::text) = (submitted_at IS NOT NULL)) AND ((state = 'partial'::text) = ((token_hash IS NOT NULL) AND (expires_at IS NOT NULL))))),
    CONSTRAINT responses_state CHECK ((state = ANY (ARRAY['partial'::text, 'complete'::text])))
);

COMMENT ON COLUMN forms.responses.answers IS 'by the field''s UUID; of a partial response as they were sent, of a complete one as the field keeps them';

COMMENT ON COLUMN forms.responses.token_hash IS 'SHA-256 of the secret with which a partial response goes on';

CREATE TABLE socle.http_responses (
    id bigint NOT NULL,
    status_code integer,
    content_type text,
    headers jsonb,
    content text,
    timed_out boolean,
    error_msg text,
    created timestamp with time zone DEFAULT now() NOT NULL,
    size integer NOT NULL
);

COMMENT ON TABLE socle.http_responses IS 'outcomes of requests, for six hours';

CREATE TABLE socle.http_requests (
    id bigint NOT NULL,
    method text NOT NULL,
    url text NOT NULL,
    params jsonb NOT NULL,
    headers jsonb NOT NULL,
    body bytea,
    timeout_milliseconds integer NOT NULL
);

COMMENT ON TABLE socle.http_requests IS 'requests that no server has taken yet';

CREATE TABLE realtime.messages (
    topic text NOT NULL,
    extension text NOT NULL,
    payload jsonb,
    event text,
    private boolean DEFAULT false,
    updated_at timestamp without time zone DEFAULT now() NOT NULL,
    inserted_at timestamp without time zone DEFAULT now() NOT NULL,
    id uuid DEFAULT gen_random_uuid() NOT NULL,
    binary_payload bytea
);

COMMENT ON TABLE realtime.messages IS 'messages to channels, for three days, and policies for private channels';

CREATE TABLE socle.applied_migrations (
    version text NOT NULL COLLATE pg_catalog."C",
    name text NOT NULL,
    checksum text NOT NULL COLLATE pg_catalog."C",
    applied_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    applied_by uuid NOT NULL,
    duration_ms double precision
);

COMMENT ON COLUMN socle.applied_migrations.applied_by IS 'a user of the platform database';

COMMENT ON COLUMN socle.applied_migrations.duration_ms IS 'null of a migration without a transaction that has not ended, or failed';

CREATE TABLE socle.audit (
    seq bigint NOT NULL,
    entry text NOT NULL,
    hash bytea NOT NULL
);

COMMENT ON COLUMN socle.audit.entry IS 'a JSON object, as text: the hash is of its bytes';

CREATE TABLE socle.audit_head (
    log text NOT NULL,
    seq bigint NOT NULL,
    hash bytea NOT NULL,
    CONSTRAINT audit_head_log CHECK ((log = 'project'::text))
);

COMMENT ON TABLE socle.audit_head IS 'the last entry; its lock puts those that write at one time in order';

CREATE TABLE socle.audit_pending (
    id bigint NOT NULL,
    entry text NOT NULL,
    mac bytea NOT NULL,
    key text,
    CONSTRAINT audit_pending_length CHECK ((octet_length(entry) <= 65536)),
    CONSTRAINT audit_pending_mac CHECK ((octet_length(mac) <= 64))
);

COMMENT ON TABLE socle.audit_pending IS 'audit entries that are not in the chain yet';

COMMENT ON COLUMN socle.audit_pending.key IS 'hash of the Idempotency-Key of the request';

ALTER TABLE socle.audit_pending ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME socle.audit_pending_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE socle.captures (
    relation oid NOT NULL,
    since xid8 DEFAULT pg_current_xact_id() NOT NULL,
    followed_at timestamp with time zone DEFAULT now() NOT NULL
);

COMMENT ON TABLE socle.captures IS 'tables whose changes are captured';

CREATE SEQUENCE socle.catalogue_changes
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;

COMMENT ON SEQUENCE socle.catalogue_changes IS 'set to a random value by each transaction that changes the catalogue version, at once';

CREATE TABLE socle.catalogue_version (
    n numeric NOT NULL,
    xact xid8
);

COMMENT ON TABLE socle.catalogue_version IS 'bit_xor(n) is the version of the schema; a server that reads the catalogue folds the rows into one';

COMMENT ON COLUMN socle.catalogue_version.xact IS 'the transaction that inserted the row; null of a row that others were folded into';

CREATE TABLE socle.edge_function_limits (
    singleton boolean DEFAULT true NOT NULL,
    memory_mb integer,
    cpu_milliseconds integer,
    answer_seconds integer,
    wall_seconds integer,
    concurrency integer,
    body_mb integer,
    processes integer,
    mail_ports boolean,
    CONSTRAINT edge_function_limits_singleton CHECK (singleton)
);

COMMENT ON TABLE socle.edge_function_limits IS 'one row at most; null stands for the default';

CREATE TABLE socle.edge_function_log (
    id bigint NOT NULL,
    at timestamp with time zone NOT NULL,
    function_name text NOT NULL,
    stream text NOT NULL,
    message text NOT NULL
);

COMMENT ON TABLE socle.edge_function_log IS 'what functions wrote; no backup has its rows';

ALTER TABLE socle.edge_function_log ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME socle.edge_function_log_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE socle.edge_function_metrics (
    function_name text NOT NULL,
    hour timestamp with time zone NOT NULL,
    calls bigint NOT NULL,
    errors bigint NOT NULL,
    cold_starts bigint NOT NULL,
    cpu_microseconds bigint NOT NULL,
    durations bigint[] NOT NULL
);

COMMENT ON TABLE socle.edge_function_metrics IS 'what all servers counted; no backup has its rows';

COMMENT ON COLUMN socle.edge_function_metrics.durations IS 'numbers of calls by the time to their answer, in the intervals of package function';

CREATE TABLE socle.edge_function_secrets (
    name text NOT NULL,
    sealed bytea NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT edge_function_secrets_name CHECK (((name COLLATE "C") ~ '^[A-Za-z_][A-Za-z0-9_]{0,254}$'::text))
);

COMMENT ON COLUMN socle.edge_function_secrets.sealed IS 'the value, which the server has sealed for this project';

CREATE TABLE socle.edge_function_versions (
    function_name text NOT NULL,
    sha256 bytea NOT NULL,
    code bytea NOT NULL,
    deployed_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT edge_function_versions_code CHECK ((octet_length(code) <= 20971520))
);

CREATE TABLE socle.edge_functions (
    name text NOT NULL,
    verify_jwt boolean DEFAULT true NOT NULL,
    sha256 bytea NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT edge_functions_name CHECK (((name COLLATE "C") ~ '^[A-Za-z0-9][A-Za-z0-9_-]{0,62}$'::text))
);

COMMENT ON COLUMN socle.edge_functions.sha256 IS 'the current version';

CREATE SEQUENCE socle.event_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 32;

CREATE TABLE socle.events (
    slot smallint DEFAULT (((floor((date_part('epoch'::text, clock_timestamp()) / (10800)::double precision)))::bigint % (10)::bigint))::smallint NOT NULL,
    xid xid8 DEFAULT pg_current_xact_id() NOT NULL,
    seq bigint DEFAULT nextval('socle.event_seq'::regclass) NOT NULL,
    at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    relation oid NOT NULL,
    operation "char" NOT NULL,
    record json,
    old json,
    size integer DEFAULT 0 NOT NULL,
    oversized boolean DEFAULT false NOT NULL,
    type text COLLATE pg_catalog."C",
    id uuid
)
PARTITION BY LIST (slot);

COMMENT ON TABLE socle.events IS 'changes of rows, for a day';

CREATE TABLE socle.events_removed (
    single boolean DEFAULT true NOT NULL,
    xid xid8 NOT NULL,
    CONSTRAINT events_removed_single_check CHECK (single)
);

CREATE VIEW socle.fact_triggers AS
 SELECT t.type,
    t.name,
    t."table",
    t.event,
    t.condition,
    t.function
   FROM ( VALUES ('socle.file.stored.v1'::text,'file_stored'::text,'storage.files'::text,'insert'::text,'true'::text,'file_fact'::text), ('socle.file.stored.v1'::text,'file_replaced'::text,'storage.files'::text,'update'::text,'old.blob_uuid <> new.blob_uuid'::text,'file_fact'::text), ('socle.file.moved.v1'::text,'file_moved'::text,'storage.files'::text,'update'::text,'old.full_file_name <> new.full_file_name or old.container_uuid <> new.container_uuid'::text,'file_fact'::text), ('socle.file.deleted.v1'::text,'file_deleted'::text,'storage.files'::text,'delete'::text,'true'::text,'file_fact'::text), ('socle.form.submitted.v1'::text,'form_submitted'::text,'forms.responses'::text,'insert'::text,'new.state = ''complete'''::text,'response_fact'::text), ('socle.form.submitted.v1'::text,'form_completed'::text,'forms.responses'::text,'update'::text,'old.state <> ''complete'' and new.state = ''complete'''::text,'response_fact'::text), ('socle.user.created.v1'::text,'user_created'::text,'auth.users'::text,'insert'::text,'true'::text,'user_fact'::text), ('socle.user.deleted.v1'::text,'user_deleted'::text,'auth.users'::text,'delete'::text,'old.deleted_at is null'::text,'user_fact'::text), ('socle.user.deleted.v1'::text,'user_hidden'::text,'auth.users'::text,'update'::text,'old.deleted_at is null and new.deleted_at is not null'::text,'user_fact'::text), ('socle.user.signed_in.v1'::text,'user_signed_in'::text,'auth.sessions'::text,'insert'::text,'true'::text,'session_fact'::text), ('socle.migration.applied.v1'::text,'migration_applied'::text,'socle.applied_migrations'::text,'insert'::text,'new.duration_ms is not null'::text,'migration_fact'::text), ('socle.migration.applied.v1'::text,'migration_ended'::text,'socle.applied_migrations'::text,'update'::text,'old.duration_ms is null and new.duration_ms is not null'::text,'migration_fact'::text)) t(type, name, "table", event, condition, function);

ALTER TABLE socle.http_requests ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME socle.http_requests_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE socle.migrations (
    id integer NOT NULL,
    version_id bigint NOT NULL,
    is_applied boolean NOT NULL,
    tstamp timestamp without time zone DEFAULT now() NOT NULL
);

ALTER TABLE socle.migrations ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME socle.migrations_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE socle.opened_vault_keys (
    id uuid NOT NULL,
    key bytea NOT NULL,
    CONSTRAINT opened_vault_keys_key CHECK ((octet_length(key) = 64))
);

COMMENT ON TABLE socle.opened_vault_keys IS 'the same key in the clear, for SQL; no dump has its rows';

CREATE TABLE socle.queries (
    uuid uuid NOT NULL,
    query text NOT NULL,
    read_only boolean NOT NULL,
    run_by uuid NOT NULL,
    started_at timestamp with time zone DEFAULT now() NOT NULL,
    duration_ms double precision,
    rows bigint,
    error_code text COLLATE pg_catalog."C"
);

COMMENT ON COLUMN socle.queries.run_by IS 'a user of the platform database';

COMMENT ON COLUMN socle.queries.duration_ms IS 'null while it runs, and for ever if the server died meanwhile';

CREATE TABLE socle.realtime_limits (
    singleton boolean DEFAULT true NOT NULL,
    sockets integer,
    channels integer,
    channels_per_socket integer,
    joins_per_second integer,
    messages_per_second integer,
    deliveries_per_second integer,
    payload_bytes integer,
    log_hours integer,
    log_bytes bigint,
    CONSTRAINT realtime_limits_singleton CHECK (singleton)
);

COMMENT ON TABLE socle.realtime_limits IS 'one row at most; null stands for the default';

CREATE TABLE socle.saved_queries (
    uuid uuid NOT NULL,
    name text NOT NULL,
    query text NOT NULL,
    created_by uuid NOT NULL,
    updated_by uuid NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT saved_queries_name CHECK (((char_length(name) >= 1) AND (char_length(name) <= 100))),
    CONSTRAINT saved_queries_query CHECK (((char_length(query) >= 1) AND (char_length(query) <= 50000)))
);

COMMENT ON COLUMN socle.saved_queries.created_by IS 'a user of the platform database, as updated_by';

CREATE TABLE socle.unsent_messages (
    seq bigint NOT NULL,
    id uuid NOT NULL,
    inserted_at timestamp without time zone NOT NULL
);

COMMENT ON TABLE socle.unsent_messages IS 'rows of realtime.messages that no server has sent yet';

ALTER TABLE socle.unsent_messages ALTER COLUMN seq ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME socle.unsent_messages_seq_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE socle.vault_keys (
    only_one boolean DEFAULT true NOT NULL,
    id uuid NOT NULL,
    sealed bytea NOT NULL,
    CONSTRAINT vault_keys_only_one CHECK (only_one)
);

COMMENT ON TABLE socle.vault_keys IS 'the key of vault.secrets, which the server has sealed for this project';

CREATE TABLE socle.webhook_deliveries (
    seq bigint NOT NULL,
    id uuid DEFAULT gen_random_uuid() NOT NULL,
    webhook uuid NOT NULL,
    event uuid NOT NULL,
    type text NOT NULL COLLATE pg_catalog."C",
    body text NOT NULL,
    size integer NOT NULL,
    status text DEFAULT 'pending'::text NOT NULL,
    attempts integer DEFAULT 0 NOT NULL,
    next_at timestamp with time zone DEFAULT now() NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    ended_at timestamp with time zone,
    log jsonb DEFAULT '[]'::jsonb NOT NULL,
    reply text DEFAULT ''::text NOT NULL,
    CONSTRAINT webhook_deliveries_status_check CHECK ((status = ANY (ARRAY['pending'::text, 'delivered'::text, 'dead'::text])))
);

COMMENT ON TABLE socle.webhook_deliveries IS 'events for a webhook: some days of them, and at most as many as package webhook keeps';

ALTER TABLE socle.webhook_deliveries ALTER COLUMN seq ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME socle.webhook_deliveries_seq_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE socle.webhook_states (
    webhook uuid NOT NULL,
    cursor text NOT NULL,
    cursor_at timestamp with time zone DEFAULT now() NOT NULL,
    removed xid8,
    captured xid8 NOT NULL,
    failing_since timestamp with time zone,
    dead integer DEFAULT 0 NOT NULL
);

CREATE TABLE storage.containers (
    uuid uuid NOT NULL,
    name text NOT NULL COLLATE pg_catalog."C",
    description text DEFAULT ''::text NOT NULL,
    is_public boolean DEFAULT false NOT NULL,
    max_file_size bigint NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    created_by uuid NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL,
    updated_by uuid NOT NULL,
    allowed_mime_types text[] DEFAULT '{}'::text[] NOT NULL,
    deleting boolean DEFAULT false NOT NULL,
    total_files bigint DEFAULT 0 NOT NULL,
    total_size bigint DEFAULT 0 NOT NULL,
    pending_changes bigint DEFAULT 0 NOT NULL,
    id text NOT NULL COLLATE pg_catalog."C",
    owner uuid,
    owner_id text,
    type text DEFAULT 'STANDARD'::text NOT NULL,
    avif_autodetection boolean DEFAULT false,
    public boolean,
    file_size_limit bigint,
    CONSTRAINT containers_max_file_size CHECK ((max_file_size >= 1))
)
INHERITS (storage.buckets);

COMMENT ON COLUMN storage.containers.max_file_size IS 'bytes; files that were there before it was lowered stay';

COMMENT ON COLUMN storage.containers.created_by IS 'a user of the platform database';

COMMENT ON COLUMN storage.containers.allowed_mime_types IS 'such as image/png or image/*; none means all';

COMMENT ON COLUMN storage.containers.deleting IS 'gone for users; its files are being removed';

COMMENT ON COLUMN storage.containers.total_files IS 'kept by triggers of storage.files';

COMMENT ON COLUMN storage.containers.pending_changes IS 'changes of files noted in storage.sorted_pending, roughly';

COMMENT ON COLUMN storage.containers.id IS 'the bucket''s name for applications; unlike name, it never changes';

CREATE TABLE storage.discarded (
    blob_uuid uuid NOT NULL,
    discarded_at timestamp with time zone DEFAULT now() NOT NULL
);

COMMENT ON TABLE storage.discarded IS 'blobs whose files were deleted: noted by the transaction that deletes the file, struck off when the bytes are gone';

CREATE VIEW storage.file_blocks AS
 SELECT container_uuid,
    first_time AS first_at,
    first_uuid,
    files
   FROM storage.sorted_blocks
  WHERE (sort = 'created_at'::text);

COMMENT ON VIEW storage.file_blocks IS 'for the release before the one that counts in each order';

CREATE TABLE storage.objects (
    id uuid GENERATED ALWAYS AS (uuid) STORED,
    bucket_id text COLLATE pg_catalog."C",
    name text GENERATED ALWAYS AS (full_file_name) STORED COLLATE pg_catalog."C",
    owner uuid,
    created_at timestamp with time zone,
    updated_at timestamp with time zone,
    last_accessed_at timestamp with time zone GENERATED ALWAYS AS (updated_at) STORED,
    metadata jsonb GENERATED ALWAYS AS (storage.object_metadata(mime_type, size, sha256, cache_control)) STORED,
    path_tokens text[] GENERATED ALWAYS AS (string_to_array(full_file_name, '/'::text)) STORED,
    version text GENERATED ALWAYS AS (md5(uuid_send(blob_uuid))) STORED,
    owner_id text,
    user_metadata jsonb,
    uuid uuid,
    container_uuid uuid,
    full_file_name text COLLATE pg_catalog."C",
    mime_type text COLLATE pg_catalog."C",
    size bigint,
    sha256 bytea,
    blob_uuid uuid,
    cache_control text,
    headers jsonb,
    CONSTRAINT storage_api_only CHECK (false) NO INHERIT
);

COMMENT ON TABLE storage.objects IS 'has no rows of its own: it lends its policies to storage.files';

CREATE TABLE storage.files (
    uuid uuid NOT NULL,
    container_uuid uuid NOT NULL,
    full_file_name text NOT NULL COLLATE pg_catalog."C",
    mime_type text NOT NULL COLLATE pg_catalog."C",
    size bigint NOT NULL,
    sha256 bytea NOT NULL,
    blob_uuid uuid NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    created_by uuid NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL,
    updated_by uuid NOT NULL,
    bucket_id text NOT NULL COLLATE pg_catalog."C",
    owner uuid,
    owner_id text,
    user_metadata jsonb,
    cache_control text,
    id uuid,
    name text COLLATE pg_catalog."C",
    path_tokens text[],
    version text,
    last_accessed_at timestamp with time zone,
    metadata jsonb,
    CONSTRAINT files_sha256 CHECK ((length(sha256) = 32)),
    CONSTRAINT files_size CHECK ((size >= 0))
)
INHERITS (storage.objects);

COMMENT ON COLUMN storage.files.blob_uuid IS 'the blob of this project that holds the bytes; never shown';

COMMENT ON COLUMN storage.files.bucket_id IS 'id of the container';

COMMENT ON COLUMN storage.files.owner_id IS 'the end user who uploaded the file';

COMMENT ON COLUMN storage.files.headers IS 'Content-Disposition, Content-Encoding, Content-Language and Expires of the upload';

CREATE TABLE storage.multipart_parts (
    blob_uuid uuid NOT NULL,
    upload_uuid uuid NOT NULL,
    number integer NOT NULL,
    size bigint NOT NULL,
    sha256 bytea NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT multipart_parts_number CHECK (((number >= 1) AND (number <= 10000))),
    CONSTRAINT multipart_parts_size CHECK ((size >= 0))
);

CREATE TABLE storage.multipart_uploads (
    uuid uuid NOT NULL,
    container_uuid uuid NOT NULL,
    full_file_name text NOT NULL COLLATE pg_catalog."C",
    mime_type text NOT NULL COLLATE pg_catalog."C",
    cache_control text,
    user_metadata jsonb,
    size bigint DEFAULT 0 NOT NULL,
    file_uuid uuid,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    headers jsonb,
    CONSTRAINT multipart_uploads_size CHECK ((size >= 0))
);

COMMENT ON TABLE storage.multipart_uploads IS 'objects that arrive in numbered parts, each a blob of its own';

COMMENT ON COLUMN storage.multipart_uploads.size IS 'bytes of all parts, which count toward the quota';

COMMENT ON COLUMN storage.multipart_uploads.file_uuid IS 'the file that came of it; it may be gone by now';

CREATE TABLE storage.resumable_uploads (
    uuid uuid NOT NULL,
    container_uuid uuid NOT NULL,
    full_file_name text NOT NULL COLLATE pg_catalog."C",
    mime_type text NOT NULL COLLATE pg_catalog."C",
    size bigint NOT NULL,
    file_uuid uuid,
    expires_at timestamp with time zone DEFAULT (now() + '1 day'::interval) NOT NULL,
    deferred boolean DEFAULT false NOT NULL,
    concat text DEFAULT ''::text NOT NULL COLLATE pg_catalog."C",
    application boolean DEFAULT false NOT NULL,
    upsert boolean DEFAULT false NOT NULL,
    owner_id text,
    cache_control text,
    user_metadata jsonb,
    metadata_header text DEFAULT ''::text NOT NULL,
    CONSTRAINT resumable_uploads_metadata_header_check CHECK ((length(metadata_header) <= 8192)),
    CONSTRAINT resumable_uploads_size CHECK ((size >= 0))
);

COMMENT ON TABLE storage.resumable_uploads IS 'files that arrive in parts, each a blob of its own';

COMMENT ON COLUMN storage.resumable_uploads.file_uuid IS 'the file that came of it; it may be gone by now';

COMMENT ON COLUMN storage.resumable_uploads.deferred IS 'the length is not known yet; size is the most that there may be';

COMMENT ON COLUMN storage.resumable_uploads.concat IS 'partial, if it becomes part of another upload; final; and the partial ones, as the client named them, if it is made of such; else empty';

COMMENT ON COLUMN storage.resumable_uploads.application IS 'begun by an application, about whose uploads policies decide';

COMMENT ON COLUMN storage.resumable_uploads.metadata_header IS 'Upload-Metadata of the request that created the upload';

CREATE TABLE storage.signed_uploads (
    uuid uuid NOT NULL,
    container_uuid uuid NOT NULL,
    expires_at timestamp with time zone NOT NULL
);

COMMENT ON TABLE storage.signed_uploads IS 'signed URLs for one upload: struck off by the transaction that makes the file';

CREATE TABLE storage.sorted_pending (
    container_uuid uuid NOT NULL,
    change smallint NOT NULL,
    full_file_name text NOT NULL COLLATE pg_catalog."C",
    mime_type text NOT NULL COLLATE pg_catalog."C",
    size bigint NOT NULL,
    created_at timestamp with time zone NOT NULL,
    updated_at timestamp with time zone NOT NULL,
    file_uuid uuid NOT NULL,
    CONSTRAINT sorted_pending_change CHECK ((change = ANY (ARRAY['-1'::integer, 1])))
)
WITH (autovacuum_vacuum_scale_factor='0', autovacuum_vacuum_threshold='5000');

COMMENT ON TABLE storage.sorted_pending IS 'files that were added to a container (1) or removed from it (-1) and are not counted in storage.sorted_blocks yet';

CREATE TABLE storage.upload_parts (
    blob_uuid uuid NOT NULL,
    upload_uuid uuid NOT NULL,
    first bigint NOT NULL,
    size bigint NOT NULL,
    CONSTRAINT upload_parts_first CHECK ((first >= 0)),
    CONSTRAINT upload_parts_size CHECK ((size > 0))
);

CREATE TABLE storage.uploads (
    blob_uuid uuid NOT NULL,
    started_at timestamp with time zone DEFAULT now() NOT NULL
);

COMMENT ON TABLE storage.uploads IS 'blobs that may hold bytes of no file: noted before the first byte, struck off by the transaction that makes the file';

CREATE TABLE storage.usage (
    single boolean DEFAULT true NOT NULL,
    files bigint NOT NULL,
    bytes bigint NOT NULL,
    max_files bigint,
    max_bytes bigint,
    CONSTRAINT usage_max_bytes CHECK ((max_bytes >= 0)),
    CONSTRAINT usage_max_files CHECK ((max_files >= 0)),
    CONSTRAINT usage_single CHECK (single)
);

COMMENT ON TABLE storage.usage IS 'one row: what the project''s files come to. Its lock puts uploads in order, so that the quota is exact';

COMMENT ON COLUMN storage.usage.max_files IS 'the project''s own quota; null: that of every project';

CREATE TABLE storage.variants (
    blob_uuid uuid NOT NULL,
    source_uuid uuid NOT NULL,
    spec text NOT NULL COLLATE pg_catalog."C",
    mime_type text NOT NULL COLLATE pg_catalog."C",
    size bigint NOT NULL,
    sha256 bytea NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT variants_sha256 CHECK ((length(sha256) = 32)),
    CONSTRAINT variants_size CHECK ((size >= 0))
);

COMMENT ON COLUMN storage.variants.source_uuid IS 'the blob that it was made of';

COMMENT ON COLUMN storage.variants.spec IS 'what was asked for, in one form';

ALTER TABLE ONLY auth.attempts
    ADD CONSTRAINT attempts_pkey PRIMARY KEY (key);

ALTER TABLE ONLY auth.audit_log_entries
    ADD CONSTRAINT audit_log_entries_pkey PRIMARY KEY (id);

ALTER TABLE ONLY auth.flow_state
    ADD CONSTRAINT flow_state_pkey PRIMARY KEY (id);

ALTER TABLE ONLY auth.identities
    ADD CONSTRAINT identities_pkey PRIMARY KEY (id);

ALTER TABLE ONLY auth.identities
    ADD CONSTRAINT identities_provider_id_provider_unique UNIQUE (provider_id, provider);

ALTER TABLE ONLY auth.mails
    ADD CONSTRAINT mails_pkey PRIMARY KEY (id);

ALTER TABLE ONLY auth.mfa_amr_claims
    ADD CONSTRAINT mfa_amr_claims_pkey PRIMARY KEY (id);

ALTER TABLE ONLY auth.mfa_amr_claims
    ADD CONSTRAINT mfa_amr_claims_session_id_authentication_method_pkey UNIQUE (session_id, authentication_method);

ALTER TABLE ONLY auth.mfa_challenges
    ADD CONSTRAINT mfa_challenges_pkey PRIMARY KEY (id);

ALTER TABLE ONLY auth.mfa_factors
    ADD CONSTRAINT mfa_factors_pkey PRIMARY KEY (id);

ALTER TABLE ONLY auth.mfa_recovery_codes
    ADD CONSTRAINT mfa_recovery_codes_pkey PRIMARY KEY (user_id, hash);

ALTER TABLE ONLY auth.oauth_authorizations
    ADD CONSTRAINT oauth_authorizations_pkey PRIMARY KEY (id);

ALTER TABLE ONLY auth.oauth_clients
    ADD CONSTRAINT oauth_clients_pkey PRIMARY KEY (id);

ALTER TABLE ONLY auth.oauth_consents
    ADD CONSTRAINT oauth_consents_pkey PRIMARY KEY (user_id, client_id);

ALTER TABLE ONLY auth.one_time_tokens
    ADD CONSTRAINT one_time_tokens_pkey PRIMARY KEY (id);

ALTER TABLE ONLY auth.passwords
    ADD CONSTRAINT passwords_pkey PRIMARY KEY (reference);

ALTER TABLE ONLY auth.sessions
    ADD CONSTRAINT sessions_pkey PRIMARY KEY (id);

ALTER TABLE ONLY auth.sign_ups
    ADD CONSTRAINT sign_ups_pkey PRIMARY KEY (id);

ALTER TABLE ONLY auth.spent_flows
    ADD CONSTRAINT spent_flows_pkey PRIMARY KEY (id);

ALTER TABLE ONLY auth.users
    ADD CONSTRAINT users_phone_key UNIQUE (phone);

ALTER TABLE ONLY auth.users
    ADD CONSTRAINT users_pkey PRIMARY KEY (id);

ALTER TABLE ONLY auth.webauthn_challenges
    ADD CONSTRAINT webauthn_challenges_pkey PRIMARY KEY (id);

ALTER TABLE ONLY auth.webauthn_credentials
    ADD CONSTRAINT webauthn_credentials_credential_id_key UNIQUE (credential_id);

ALTER TABLE ONLY auth.webauthn_credentials
    ADD CONSTRAINT webauthn_credentials_pkey PRIMARY KEY (id);

ALTER TABLE ONLY forms.definitions
    ADD CONSTRAINT definitions_pkey PRIMARY KEY (form_uuid, version);

ALTER TABLE ONLY forms.fields
    ADD CONSTRAINT fields_name_key UNIQUE (form_uuid, name);

ALTER TABLE ONLY forms.fields
    ADD CONSTRAINT fields_pkey PRIMARY KEY (uuid);

ALTER TABLE ONLY forms.fields
    ADD CONSTRAINT fields_position_key UNIQUE (form_uuid, "position");

ALTER TABLE ONLY forms.forms
    ADD CONSTRAINT forms_pkey PRIMARY KEY (uuid);

ALTER TABLE ONLY forms.notifications
    ADD CONSTRAINT notifications_pkey PRIMARY KEY (response_uuid);

ALTER TABLE ONLY forms.recipients
    ADD CONSTRAINT recipients_pkey PRIMARY KEY (email);

ALTER TABLE ONLY forms.responses
    ADD CONSTRAINT responses_pkey PRIMARY KEY (uuid);

ALTER TABLE ONLY realtime.messages
    ADD CONSTRAINT messages_pkey PRIMARY KEY (id, inserted_at);

ALTER TABLE ONLY socle.applied_migrations
    ADD CONSTRAINT applied_migrations_pkey PRIMARY KEY (version);

ALTER TABLE ONLY socle.audit_head
    ADD CONSTRAINT audit_head_pkey PRIMARY KEY (log);

ALTER TABLE ONLY socle.audit_pending
    ADD CONSTRAINT audit_pending_pkey PRIMARY KEY (id);

ALTER TABLE ONLY socle.audit
    ADD CONSTRAINT audit_pkey PRIMARY KEY (seq);

ALTER TABLE ONLY socle.captures
    ADD CONSTRAINT captures_pkey PRIMARY KEY (relation);

ALTER TABLE ONLY socle.edge_function_limits
    ADD CONSTRAINT edge_function_limits_pkey PRIMARY KEY (singleton);

ALTER TABLE ONLY socle.edge_function_log
    ADD CONSTRAINT edge_function_log_pkey PRIMARY KEY (id);

ALTER TABLE ONLY socle.edge_function_metrics
    ADD CONSTRAINT edge_function_metrics_pkey PRIMARY KEY (function_name, hour);

ALTER TABLE ONLY socle.edge_function_secrets
    ADD CONSTRAINT edge_function_secrets_pkey PRIMARY KEY (name);

ALTER TABLE ONLY socle.edge_function_versions
    ADD CONSTRAINT edge_function_versions_pkey PRIMARY KEY (function_name, sha256);

ALTER TABLE ONLY socle.edge_functions
    ADD CONSTRAINT edge_functions_pkey PRIMARY KEY (name);

ALTER TABLE ONLY socle.events_removed
    ADD CONSTRAINT events_removed_pkey PRIMARY KEY (single);

ALTER TABLE ONLY socle.http_requests
    ADD CONSTRAINT http_requests_pkey PRIMARY KEY (id);

ALTER TABLE ONLY socle.kept_answers
    ADD CONSTRAINT kept_answers_pkey PRIMARY KEY (key);

ALTER TABLE ONLY socle.migrations
    ADD CONSTRAINT migrations_pkey PRIMARY KEY (id);

ALTER TABLE ONLY socle.opened_vault_keys
    ADD CONSTRAINT opened_vault_keys_pkey PRIMARY KEY (id);

ALTER TABLE ONLY socle.queries
    ADD CONSTRAINT queries_pkey PRIMARY KEY (uuid);

ALTER TABLE ONLY socle.realtime_limits
    ADD CONSTRAINT realtime_limits_pkey PRIMARY KEY (singleton);

ALTER TABLE ONLY socle.saved_queries
    ADD CONSTRAINT saved_queries_name_key UNIQUE (name);

ALTER TABLE ONLY socle.saved_queries
    ADD CONSTRAINT saved_queries_pkey PRIMARY KEY (uuid);

ALTER TABLE ONLY socle.unsent_messages
    ADD CONSTRAINT unsent_messages_pkey PRIMARY KEY (seq);

ALTER TABLE ONLY socle.vault_keys
    ADD CONSTRAINT vault_keys_pkey PRIMARY KEY (only_one);

ALTER TABLE ONLY socle.webhook_deliveries
    ADD CONSTRAINT webhook_deliveries_event_key UNIQUE (webhook, event);

ALTER TABLE ONLY socle.webhook_deliveries
    ADD CONSTRAINT webhook_deliveries_id_key UNIQUE (id);

ALTER TABLE ONLY socle.webhook_deliveries
    ADD CONSTRAINT webhook_deliveries_pkey PRIMARY KEY (seq);

ALTER TABLE ONLY socle.webhook_states
    ADD CONSTRAINT webhook_states_pkey PRIMARY KEY (webhook);

ALTER TABLE ONLY socle.webhooks
    ADD CONSTRAINT webhooks_name_key UNIQUE (name);

ALTER TABLE ONLY socle.webhooks
    ADD CONSTRAINT webhooks_pkey PRIMARY KEY (id);

ALTER TABLE ONLY storage.containers
    ADD CONSTRAINT containers_id_key UNIQUE (id);

ALTER TABLE ONLY storage.containers
    ADD CONSTRAINT containers_name_key UNIQUE (name);

ALTER TABLE ONLY storage.containers
    ADD CONSTRAINT containers_pkey PRIMARY KEY (uuid);

ALTER TABLE ONLY storage.discarded
    ADD CONSTRAINT discarded_pkey PRIMARY KEY (blob_uuid);

ALTER TABLE ONLY storage.files
    ADD CONSTRAINT files_blob_key UNIQUE (blob_uuid);

ALTER TABLE ONLY storage.files
    ADD CONSTRAINT files_full_file_name_key UNIQUE (container_uuid, full_file_name);

ALTER TABLE ONLY storage.files
    ADD CONSTRAINT files_pkey PRIMARY KEY (uuid);

ALTER TABLE ONLY storage.multipart_parts
    ADD CONSTRAINT multipart_parts_number_key UNIQUE (upload_uuid, number);

ALTER TABLE ONLY storage.multipart_parts
    ADD CONSTRAINT multipart_parts_pkey PRIMARY KEY (blob_uuid);

ALTER TABLE ONLY storage.multipart_uploads
    ADD CONSTRAINT multipart_uploads_pkey PRIMARY KEY (uuid);

ALTER TABLE ONLY storage.resumable_uploads
    ADD CONSTRAINT resumable_uploads_pkey PRIMARY KEY (uuid);

ALTER TABLE ONLY storage.signed_uploads
    ADD CONSTRAINT signed_uploads_pkey PRIMARY KEY (uuid);

ALTER TABLE ONLY storage.sorted_blocks
    ADD CONSTRAINT sorted_blocks_pkey PRIMARY KEY (container_uuid, sort, first_text, first_number, first_time, first_uuid);

ALTER TABLE ONLY storage.upload_parts
    ADD CONSTRAINT upload_parts_first_key UNIQUE (upload_uuid, first);

ALTER TABLE ONLY storage.upload_parts
    ADD CONSTRAINT upload_parts_pkey PRIMARY KEY (blob_uuid);

ALTER TABLE ONLY storage.uploads
    ADD CONSTRAINT uploads_pkey PRIMARY KEY (blob_uuid);

ALTER TABLE ONLY storage.usage
    ADD CONSTRAINT usage_pkey PRIMARY KEY (single);

ALTER TABLE ONLY storage.variants
    ADD CONSTRAINT variants_pkey PRIMARY KEY (blob_uuid);

ALTER TABLE ONLY storage.variants
    ADD CONSTRAINT variants_spec_key UNIQUE (source_uuid, spec);

CREATE INDEX attempts_resets_at ON auth.attempts USING btree (resets_at);

CREATE INDEX audit_log_entries_created_at ON auth.audit_log_entries USING btree (created_at);

CREATE INDEX flow_state_created_at ON auth.flow_state USING btree (created_at);

CREATE INDEX flow_state_user_id ON auth.flow_state USING btree (user_id);

CREATE INDEX identities_user_id_idx ON auth.identities USING btree (user_id);

CREATE INDEX mails_created_at ON auth.mails USING btree (created_at, id);

CREATE INDEX mfa_challenges_created_at ON auth.mfa_challenges USING btree (created_at);

CREATE INDEX mfa_challenges_factor_id ON auth.mfa_challenges USING btree (factor_id);

CREATE UNIQUE INDEX mfa_factors_user_friendly_name_unique ON auth.mfa_factors USING btree (friendly_name, user_id) WHERE (TRIM(BOTH FROM friendly_name) <> ''::text);

CREATE INDEX mfa_factors_user_id_idx ON auth.mfa_factors USING btree (user_id);

CREATE INDEX oauth_authorizations_client_id ON auth.oauth_authorizations USING btree (client_id);

CREATE INDEX oauth_authorizations_created_at ON auth.oauth_authorizations USING btree (created_at);

CREATE INDEX oauth_authorizations_user_id ON auth.oauth_authorizations USING btree (user_id);

CREATE INDEX oauth_clients_created_at ON auth.oauth_clients USING btree (created_at, id);

CREATE INDEX oauth_consents_client_id ON auth.oauth_consents USING btree (client_id);

CREATE INDEX one_time_tokens_created_at ON auth.one_time_tokens USING btree (created_at);

CREATE INDEX one_time_tokens_relates_to ON auth.one_time_tokens USING btree (relates_to);

CREATE UNIQUE INDEX one_time_tokens_user_id_token_type_key ON auth.one_time_tokens USING btree (user_id, token_type);

CREATE INDEX passwords_unclaimed ON auth.passwords USING btree (created_at) WHERE (user_id IS NULL);

CREATE INDEX sessions_oauth_client_id ON auth.sessions USING btree (oauth_client_id) WHERE (oauth_client_id IS NOT NULL);

CREATE INDEX sessions_refreshed_at ON auth.sessions USING btree (COALESCE(refreshed_at, created_at));

CREATE INDEX sessions_user_id_idx ON auth.sessions USING btree (user_id, created_at);

CREATE INDEX sign_ups_relates_to ON auth.sign_ups USING btree (relates_to);

CREATE INDEX sign_ups_user_id ON auth.sign_ups USING btree (user_id);

CREATE INDEX spent_flows_created_at ON auth.spent_flows USING btree (created_at);

CREATE INDEX users_anonymous ON auth.users USING btree (created_at) WHERE is_anonymous;

CREATE INDEX users_created_at ON auth.users USING btree (created_at, id);

CREATE INDEX users_email_normalized ON auth.users USING btree (NORMALIZE(email, NFKC)) WHERE (NOT (email IS NFKC NORMALIZED));

CREATE UNIQUE INDEX users_email_partial_key ON auth.users USING btree (email) WHERE (is_sso_user = false);

CREATE INDEX webauthn_challenges_created_at ON auth.webauthn_challenges USING btree (created_at);

CREATE INDEX webauthn_challenges_user_id_idx ON auth.webauthn_challenges USING btree (user_id);

CREATE INDEX webauthn_credentials_factor_id_idx ON auth.webauthn_credentials USING btree (factor_id);

CREATE INDEX webauthn_credentials_user_id_idx ON auth.webauthn_credentials USING btree (user_id);

CREATE INDEX forms_container ON forms.forms USING btree (container_uuid);

CREATE INDEX forms_created_at ON forms.forms USING btree (created_at, uuid);

CREATE INDEX forms_logo ON forms.forms USING btree (logo_uuid);

CREATE INDEX notifications_form ON forms.notifications USING btree (form_uuid, created_at);

CREATE INDEX responses_created_at ON forms.responses USING btree (form_uuid, created_at, uuid);

CREATE INDEX responses_expires ON forms.responses USING btree (expires_at) WHERE (state = 'partial'::text);

CREATE INDEX responses_version ON forms.responses USING btree (form_uuid, version);

CREATE INDEX messages_inserted_at ON realtime.messages USING btree (inserted_at);

CREATE INDEX audit_at ON socle.audit USING btree ((((entry)::jsonb ->> 'at'::text)));

CREATE UNIQUE INDEX audit_key ON socle.audit USING btree ((((entry)::jsonb ->> 'key'::text))) WHERE (((entry)::jsonb ->> 'key'::text) IS NOT NULL);

COMMENT ON INDEX socle.audit_key IS 'what was asked for under an Idempotency-Key happens once';

CREATE UNIQUE INDEX audit_pending_key ON socle.audit_pending USING btree (key) WHERE (key IS NOT NULL);

CREATE UNIQUE INDEX catalogue_version_xact ON socle.catalogue_version USING btree (xact);

CREATE INDEX edge_function_log_function ON socle.edge_function_log USING btree (function_name, id);

CREATE INDEX events_xid_seq ON ONLY socle.events USING btree (xid, seq);

CREATE INDEX http_responses_created ON socle.http_responses USING btree (created);

CREATE INDEX http_responses_id ON socle.http_responses USING btree (id);

CREATE INDEX kept_answers_kept_at_idx ON socle.kept_answers USING btree (kept_at);

CREATE INDEX webhook_deliveries_listed ON socle.webhook_deliveries USING btree (webhook, seq);

CREATE INDEX webhook_deliveries_pending ON socle.webhook_deliveries USING btree (webhook, seq) INCLUDE (size, next_at) WHERE (status = 'pending'::text);

CREATE UNIQUE INDEX buckets_id_key ON storage.buckets USING btree (id);

CREATE UNIQUE INDEX buckets_name_key ON storage.buckets USING btree (name);

CREATE INDEX containers_deleting ON storage.containers USING btree (uuid) WHERE deleting;

CREATE INDEX files_created_at ON storage.files USING btree (container_uuid, created_at, uuid);

CREATE INDEX files_mime_type ON storage.files USING btree (container_uuid, mime_type, uuid);

CREATE INDEX files_owner_id ON storage.files USING btree (owner_id) WHERE (owner_id IS NOT NULL);

CREATE INDEX files_size ON storage.files USING btree (container_uuid, size, uuid);

CREATE INDEX files_updated_at ON storage.files USING btree (container_uuid, updated_at, uuid);

CREATE INDEX multipart_uploads_container ON storage.multipart_uploads USING btree (container_uuid);

CREATE INDEX multipart_uploads_expires_at ON storage.multipart_uploads USING btree (expires_at);

CREATE INDEX resumable_uploads_container ON storage.resumable_uploads USING btree (container_uuid);

CREATE INDEX resumable_uploads_expires_at ON storage.resumable_uploads USING btree (expires_at);

CREATE INDEX signed_uploads_container ON storage.signed_uploads USING btree (container_uuid);

CREATE INDEX signed_uploads_expires_at ON storage.signed_uploads USING btree (expires_at);

CREATE INDEX sorted_pending_container ON storage.sorted_pending USING btree (container_uuid);

CREATE INDEX uploads_started_at ON storage.uploads USING btree (started_at);

CREATE INDEX variants_created_at ON storage.variants USING btree (created_at);

CREATE TRIGGER check_identity BEFORE INSERT ON auth.identities FOR EACH ROW WHEN ((CURRENT_USER <> ((current_database())::text || '_auth'::text))) EXECUTE FUNCTION auth.check_identity();

CREATE TRIGGER identity_written AFTER INSERT ON auth.identities FOR EACH ROW WHEN ((CURRENT_USER <> ((current_database())::text || '_auth'::text))) EXECUTE FUNCTION auth.identity_written();

CREATE TRIGGER socle_check_user BEFORE INSERT OR DELETE OR UPDATE ON auth.users FOR EACH ROW WHEN ((CURRENT_USER <> ((current_database())::text || '_auth'::text))) EXECUTE FUNCTION auth.check_user();

CREATE TRIGGER socle_hide_password BEFORE INSERT OR UPDATE ON auth.users FOR EACH ROW WHEN ((NOT starts_with(new.encrypted_password, '$2$hidden$'::text))) EXECUTE FUNCTION auth.hide_password();

CREATE TRIGGER socle_password_deleted AFTER DELETE ON auth.users FOR EACH ROW WHEN ((old.encrypted_password IS NOT NULL)) EXECUTE FUNCTION auth.password_written();

CREATE TRIGGER socle_password_inserted AFTER INSERT ON auth.users FOR EACH ROW WHEN ((new.encrypted_password IS NOT NULL)) EXECUTE FUNCTION auth.password_written();

CREATE TRIGGER socle_password_updated AFTER UPDATE ON auth.users FOR EACH ROW WHEN ((new.encrypted_password IS DISTINCT FROM old.encrypted_password)) EXECUTE FUNCTION auth.password_written();

CREATE TRIGGER socle_users_inserted AFTER INSERT ON auth.users REFERENCING NEW TABLE AS written FOR EACH STATEMENT WHEN ((CURRENT_USER <> ((current_database())::text || '_auth'::text))) EXECUTE FUNCTION auth.users_inserted();

CREATE TRIGGER socle_users_updated AFTER UPDATE ON auth.users REFERENCING OLD TABLE AS former NEW TABLE AS written FOR EACH STATEMENT WHEN ((CURRENT_USER <> ((current_database())::text || '_auth'::text))) EXECUTE FUNCTION auth.users_updated();

CREATE TRIGGER socle_check_message BEFORE INSERT ON realtime.messages FOR EACH ROW EXECUTE FUNCTION realtime.check_message();

CREATE TRIGGER socle_queue_message AFTER INSERT ON realtime.messages FOR EACH ROW WHEN ((new.extension = 'broadcast'::text)) EXECUTE FUNCTION realtime.queue_message();

CREATE TRIGGER assign_bucket BEFORE INSERT ON storage.files FOR EACH ROW WHEN ((new.bucket_id IS NULL)) EXECUTE FUNCTION storage.assign_bucket();

CREATE TRIGGER assign_moved_bucket BEFORE UPDATE ON storage.files FOR EACH ROW WHEN ((old.container_uuid IS DISTINCT FROM new.container_uuid)) EXECUTE FUNCTION storage.assign_bucket();

CREATE TRIGGER bytes_replaced BEFORE UPDATE ON storage.files FOR EACH ROW WHEN ((old.blob_uuid IS DISTINCT FROM new.blob_uuid)) EXECUTE FUNCTION storage.bytes_replaced();

CREATE TRIGGER change_bucket BEFORE DELETE OR UPDATE ON storage.containers FOR EACH ROW WHEN ((current_setting('is_superuser'::text) = 'off'::text)) EXECUTE FUNCTION storage.change_bucket();

CREATE TRIGGER containers_inserted AFTER INSERT ON storage.containers REFERENCING NEW TABLE AS new_containers FOR EACH STATEMENT EXECUTE FUNCTION storage.containers_inserted();

CREATE TRIGGER files_deleted AFTER DELETE ON storage.files REFERENCING OLD TABLE AS old_files FOR EACH STATEMENT EXECUTE FUNCTION storage.files_deleted();

CREATE TRIGGER files_inserted AFTER INSERT ON storage.files REFERENCING NEW TABLE AS new_files FOR EACH STATEMENT WHEN ((current_setting('socle.counted'::text, true) IS DISTINCT FROM 'on'::text)) EXECUTE FUNCTION storage.files_inserted();

CREATE TRIGGER files_updated AFTER UPDATE ON storage.files REFERENCING OLD TABLE AS old_files NEW TABLE AS new_files FOR EACH STATEMENT EXECUTE FUNCTION storage.files_updated();

CREATE TRIGGER insert_bucket BEFORE INSERT ON storage.buckets FOR EACH ROW EXECUTE FUNCTION storage.insert_bucket();

CREATE TRIGGER name_bucket BEFORE INSERT ON storage.containers FOR EACH ROW WHEN ((new.id IS NULL)) EXECUTE FUNCTION storage.name_bucket();

CREATE TRIGGER name_deleted_bucket BEFORE UPDATE ON storage.containers FOR EACH ROW WHEN ((new.deleting AND (NOT old.deleting))) EXECUTE FUNCTION storage.name_bucket();

CREATE TRIGGER note_insert BEFORE INSERT ON storage.buckets FOR EACH STATEMENT EXECUTE FUNCTION storage.note_upsert();

CREATE TRIGGER note_update BEFORE UPDATE ON storage.buckets FOR EACH STATEMENT EXECUTE FUNCTION storage.note_upsert();

CREATE TRIGGER parts_deleted AFTER DELETE ON storage.multipart_parts REFERENCING OLD TABLE AS old_parts FOR EACH STATEMENT EXECUTE FUNCTION storage.parts_deleted();

CREATE TRIGGER parts_deleted AFTER DELETE ON storage.upload_parts REFERENCING OLD TABLE AS old_parts FOR EACH STATEMENT EXECUTE FUNCTION storage.parts_deleted();

CREATE TRIGGER place_changes AFTER UPDATE OF pending_changes ON storage.containers FOR EACH ROW WHEN ((new.pending_changes >= 1000)) EXECUTE FUNCTION storage.place_changes();

CREATE TRIGGER refuse_delete AFTER DELETE ON storage.buckets FOR EACH STATEMENT EXECUTE FUNCTION storage.refuse_change();

CREATE TRIGGER refuse_delete BEFORE DELETE ON storage.containers FOR EACH ROW WHEN ((current_setting('is_superuser'::text) = 'off'::text)) EXECUTE FUNCTION storage.refuse_change();

CREATE TRIGGER refuse_delete AFTER DELETE ON storage.objects REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION storage.refuse_changes();

CREATE TRIGGER refuse_truncate BEFORE TRUNCATE ON storage.buckets FOR EACH STATEMENT EXECUTE FUNCTION storage.refuse_change();

CREATE TRIGGER refuse_truncate BEFORE TRUNCATE ON storage.objects FOR EACH STATEMENT EXECUTE FUNCTION storage.refuse_change();

CREATE TRIGGER refuse_update AFTER UPDATE ON storage.buckets REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION storage.refuse_bucket_changes();

CREATE TRIGGER refuse_update AFTER UPDATE ON storage.objects REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION storage.refuse_changes();

CREATE TRIGGER sync_bucket BEFORE INSERT OR UPDATE ON storage.containers FOR EACH ROW WHEN (((new.public IS DISTINCT FROM new.is_public) OR (new.file_size_limit IS DISTINCT FROM new.max_file_size))) EXECUTE FUNCTION storage.sync_bucket();

CREATE TRIGGER variant_deleted AFTER DELETE ON storage.variants FOR EACH ROW EXECUTE FUNCTION storage.variant_deleted();

ALTER TABLE ONLY auth.flow_state
    ADD CONSTRAINT flow_state_user_id_fkey FOREIGN KEY (user_id) REFERENCES auth.users(id) ON DELETE CASCADE;

ALTER TABLE ONLY auth.identities
    ADD CONSTRAINT identities_user_id_fkey FOREIGN KEY (user_id) REFERENCES auth.users(id) ON DELETE CASCADE;

ALTER TABLE ONLY auth.mfa_amr_claims
    ADD CONSTRAINT mfa_amr_claims_session_id_fkey FOREIGN KEY (session_id) REFERENCES auth.sessions(id) ON DELETE CASCADE;

ALTER TABLE ONLY auth.mfa_challenges
    ADD CONSTRAINT mfa_challenges_auth_factor_id_fkey FOREIGN KEY (factor_id) REFERENCES auth.mfa_factors(id) ON DELETE CASCADE;

ALTER TABLE ONLY auth.mfa_factors
    ADD CONSTRAINT mfa_factors_user_id_fkey FOREIGN KEY (user_id) REFERENCES auth.users(id) ON DELETE CASCADE;

ALTER TABLE ONLY auth.mfa_recovery_codes
    ADD CONSTRAINT mfa_recovery_codes_user_id_fkey FOREIGN KEY (user_id) REFERENCES auth.users(id) ON DELETE CASCADE;

ALTER TABLE ONLY auth.oauth_authorizations
    ADD CONSTRAINT oauth_authorizations_client_id_fkey FOREIGN KEY (client_id) REFERENCES auth.oauth_clients(id) ON DELETE CASCADE;

ALTER TABLE ONLY auth.oauth_authorizations
    ADD CONSTRAINT oauth_authorizations_user_id_fkey FOREIGN KEY (user_id) REFERENCES auth.users(id) ON DELETE CASCADE;

ALTER TABLE ONLY auth.oauth_consents
    ADD CONSTRAINT oauth_consents_client_id_fkey FOREIGN KEY (client_id) REFERENCES auth.oauth_clients(id) ON DELETE CASCADE;

ALTER TABLE ONLY auth.oauth_consents
    ADD CONSTRAINT oauth_consents_user_id_fkey FOREIGN KEY (user_id) REFERENCES auth.users(id) ON DELETE CASCADE;

ALTER TABLE ONLY auth.one_time_tokens
    ADD CONSTRAINT one_time_tokens_user_id_fkey FOREIGN KEY (user_id) REFERENCES auth.users(id) ON DELETE CASCADE;

ALTER TABLE ONLY auth.sessions
    ADD CONSTRAINT sessions_oauth_client_id_fkey FOREIGN KEY (oauth_client_id) REFERENCES auth.oauth_clients(id) ON DELETE CASCADE;

ALTER TABLE ONLY auth.sessions
    ADD CONSTRAINT sessions_user_id_fkey FOREIGN KEY (user_id) REFERENCES auth.users(id) ON DELETE CASCADE;

ALTER TABLE ONLY auth.sign_ups
    ADD CONSTRAINT sign_ups_user_id_fkey FOREIGN KEY (user_id) REFERENCES auth.users(id) ON DELETE CASCADE;

ALTER TABLE ONLY auth.webauthn_challenges
    ADD CONSTRAINT webauthn_challenges_user_id_fkey FOREIGN KEY (user_id) REFERENCES auth.users(id) ON DELETE CASCADE;

ALTER TABLE ONLY auth.webauthn_credentials
    ADD CONSTRAINT webauthn_credentials_factor_id_fkey FOREIGN KEY (factor_id) REFERENCES auth.mfa_factors(id) ON DELETE CASCADE;

ALTER TABLE ONLY auth.webauthn_credentials
    ADD CONSTRAINT webauthn_credentials_user_id_fkey FOREIGN KEY (user_id) REFERENCES auth.users(id) ON DELETE CASCADE;

ALTER TABLE ONLY forms.definitions
    ADD CONSTRAINT definitions_form FOREIGN KEY (form_uuid) REFERENCES forms.forms(uuid) ON DELETE CASCADE;

ALTER TABLE ONLY forms.fields
    ADD CONSTRAINT fields_form FOREIGN KEY (form_uuid) REFERENCES forms.forms(uuid) ON DELETE CASCADE;

ALTER TABLE ONLY forms.forms
    ADD CONSTRAINT forms_container FOREIGN KEY (container_uuid) REFERENCES storage.containers(uuid) ON DELETE SET NULL;

ALTER TABLE ONLY forms.forms
    ADD CONSTRAINT forms_logo FOREIGN KEY (logo_uuid) REFERENCES storage.files(uuid) ON DELETE SET NULL;

ALTER TABLE ONLY forms.notifications
    ADD CONSTRAINT notifications_response FOREIGN KEY (response_uuid) REFERENCES forms.responses(uuid) ON DELETE CASCADE;

ALTER TABLE ONLY forms.responses
    ADD CONSTRAINT responses_definition FOREIGN KEY (form_uuid, version) REFERENCES forms.definitions(form_uuid, version);

ALTER TABLE ONLY socle.edge_function_versions
    ADD CONSTRAINT edge_function_versions_function_name_fkey FOREIGN KEY (function_name) REFERENCES socle.edge_functions(name) ON DELETE CASCADE;

ALTER TABLE ONLY socle.webhook_deliveries
    ADD CONSTRAINT webhook_deliveries_webhook_fkey FOREIGN KEY (webhook) REFERENCES socle.webhooks(id) ON DELETE CASCADE;

ALTER TABLE ONLY socle.webhook_states
    ADD CONSTRAINT webhook_states_webhook_fkey FOREIGN KEY (webhook) REFERENCES socle.webhooks(id) ON DELETE CASCADE;

ALTER TABLE ONLY storage.files
    ADD CONSTRAINT files_container FOREIGN KEY (container_uuid) REFERENCES storage.containers(uuid) ON DELETE CASCADE;

ALTER TABLE ONLY storage.multipart_parts
    ADD CONSTRAINT multipart_parts_upload FOREIGN KEY (upload_uuid) REFERENCES storage.multipart_uploads(uuid) ON DELETE CASCADE;

ALTER TABLE ONLY storage.multipart_uploads
    ADD CONSTRAINT multipart_uploads_container FOREIGN KEY (container_uuid) REFERENCES storage.containers(uuid) ON DELETE CASCADE;

ALTER TABLE ONLY storage.resumable_uploads
    ADD CONSTRAINT resumable_uploads_container FOREIGN KEY (container_uuid) REFERENCES storage.containers(uuid) ON DELETE CASCADE;

ALTER TABLE ONLY storage.signed_uploads
    ADD CONSTRAINT signed_uploads_container FOREIGN KEY (container_uuid) REFERENCES storage.containers(uuid) ON DELETE CASCADE;

ALTER TABLE ONLY storage.sorted_blocks
    ADD CONSTRAINT sorted_blocks_container FOREIGN KEY (container_uuid) REFERENCES storage.containers(uuid) ON DELETE CASCADE;

ALTER TABLE ONLY storage.upload_parts
    ADD CONSTRAINT upload_parts_upload FOREIGN KEY (upload_uuid) REFERENCES storage.resumable_uploads(uuid) ON DELETE CASCADE;

ALTER TABLE ONLY storage.variants
    ADD CONSTRAINT variants_source FOREIGN KEY (source_uuid) REFERENCES storage.files(blob_uuid) ON DELETE CASCADE;

ALTER TABLE forms.definitions ENABLE ROW LEVEL SECURITY;

ALTER TABLE forms.fields ENABLE ROW LEVEL SECURITY;

ALTER TABLE forms.forms ENABLE ROW LEVEL SECURITY;

ALTER TABLE forms.notifications ENABLE ROW LEVEL SECURITY;

ALTER TABLE forms.recipients ENABLE ROW LEVEL SECURITY;

ALTER TABLE forms.responses ENABLE ROW LEVEL SECURITY;

ALTER TABLE realtime.messages ENABLE ROW LEVEL SECURITY;

ALTER TABLE socle.audit ENABLE ROW LEVEL SECURITY;

ALTER TABLE socle.audit_head ENABLE ROW LEVEL SECURITY;

ALTER TABLE socle.audit_pending ENABLE ROW LEVEL SECURITY;

ALTER TABLE socle.captures ENABLE ROW LEVEL SECURITY;

ALTER TABLE socle.events_removed ENABLE ROW LEVEL SECURITY;

ALTER TABLE socle.queries ENABLE ROW LEVEL SECURITY;

ALTER TABLE storage.buckets ENABLE ROW LEVEL SECURITY;

ALTER TABLE storage.containers ENABLE ROW LEVEL SECURITY;

ALTER TABLE storage.discarded ENABLE ROW LEVEL SECURITY;

ALTER TABLE storage.files ENABLE ROW LEVEL SECURITY;

ALTER TABLE storage.multipart_parts ENABLE ROW LEVEL SECURITY;

ALTER TABLE storage.multipart_uploads ENABLE ROW LEVEL SECURITY;

ALTER TABLE storage.objects ENABLE ROW LEVEL SECURITY;

ALTER TABLE storage.resumable_uploads ENABLE ROW LEVEL SECURITY;

ALTER TABLE storage.signed_uploads ENABLE ROW LEVEL SECURITY;

ALTER TABLE storage.sorted_blocks ENABLE ROW LEVEL SECURITY;

ALTER TABLE storage.sorted_pending ENABLE ROW LEVEL SECURITY;

ALTER TABLE storage.upload_parts ENABLE ROW LEVEL SECURITY;

ALTER TABLE storage.uploads ENABLE ROW LEVEL SECURITY;

ALTER TABLE storage.usage ENABLE ROW LEVEL SECURITY;

ALTER TABLE storage.variants ENABLE ROW LEVEL SECURITY;

GRANT USAGE ON SCHEMA auth TO anon;
GRANT USAGE ON SCHEMA auth TO authenticated;
GRANT USAGE ON SCHEMA auth TO service_role;
GRANT USAGE ON SCHEMA auth TO socle_reader;
GRANT USAGE ON SCHEMA auth TO socle_PROJECT_auth;
GRANT USAGE ON SCHEMA auth TO socle_PROJECT_owner;

GRANT USAGE ON SCHEMA realtime TO anon;
GRANT USAGE ON SCHEMA realtime TO authenticated;
GRANT USAGE ON SCHEMA realtime TO service_role;
GRANT USAGE ON SCHEMA realtime TO socle_PROJECT_owner;
GRANT USAGE ON SCHEMA realtime TO socle_PROJECT_auth;

GRANT USAGE ON SCHEMA socle TO socle_PROJECT_auth;
GRANT USAGE ON SCHEMA socle TO socle_PROJECT_owner;
GRANT USAGE ON SCHEMA socle TO socle_PROJECT_request;
GRANT USAGE ON SCHEMA socle TO socle_PROJECT_service;

GRANT USAGE ON SCHEMA storage TO anon;
GRANT USAGE ON SCHEMA storage TO authenticated;
GRANT USAGE ON SCHEMA storage TO service_role;
GRANT USAGE ON SCHEMA storage TO socle_reader;
GRANT USAGE ON SCHEMA storage TO socle_PROJECT_owner;

REVOKE ALL ON FUNCTION auth.check_hash(hash text) FROM PUBLIC;
GRANT ALL ON FUNCTION auth.check_hash(hash text) TO socle_PROJECT_owner;

REVOKE ALL ON FUNCTION auth.check_identity() FROM PUBLIC;

GRANT SELECT,INSERT,DELETE,TRIGGER,UPDATE ON TABLE auth.users TO socle_PROJECT_owner;

GRANT REFERENCES(id) ON TABLE auth.users TO socle_PROJECT_owner;

REVOKE ALL ON FUNCTION auth.check_times(person auth.users) FROM PUBLIC;
GRANT ALL ON FUNCTION auth.check_times(person auth.users) TO socle_PROJECT_owner;

REVOKE ALL ON FUNCTION auth.check_user() FROM PUBLIC;

REVOKE ALL ON FUNCTION auth.clean_email(address text) FROM PUBLIC;
GRANT ALL ON FUNCTION auth.clean_email(address text) TO socle_PROJECT_owner;

REVOKE ALL ON FUNCTION auth.clean_metadata(name text, value jsonb) FROM PUBLIC;
GRANT ALL ON FUNCTION auth.clean_metadata(name text, value jsonb) TO socle_PROJECT_owner;

REVOKE ALL ON FUNCTION auth.clean_phone(number text) FROM PUBLIC;
GRANT ALL ON FUNCTION auth.clean_phone(number text) TO socle_PROJECT_owner;

REVOKE ALL ON FUNCTION auth.email() FROM PUBLIC;
GRANT ALL ON FUNCTION auth.email() TO anon;
GRANT ALL ON FUNCTION auth.email() TO authenticated;
GRANT ALL ON FUNCTION auth.email() TO service_role;
GRANT ALL ON FUNCTION auth.email() TO socle_reader;
GRANT ALL ON FUNCTION auth.email() TO socle_PROJECT_owner;

REVOKE ALL ON FUNCTION auth.follow_user(changed uuid, changed_password boolean, changed_address boolean) FROM PUBLIC;
GRANT ALL ON FUNCTION auth.follow_user(changed uuid, changed_password boolean, changed_address boolean) TO socle_PROJECT_owner;

REVOKE ALL ON FUNCTION auth.follow_users(written uuid[], new_passwords uuid[], new_addresses uuid[]) FROM PUBLIC;
GRANT ALL ON FUNCTION auth.follow_users(written uuid[], new_passwords uuid[], new_addresses uuid[]) TO socle_PROJECT_owner;

REVOKE ALL ON FUNCTION auth.hide_password() FROM PUBLIC;

REVOKE ALL ON FUNCTION auth.hide_passwords() FROM PUBLIC;

REVOKE ALL ON FUNCTION auth.identity_written() FROM PUBLIC;

REVOKE ALL ON FUNCTION auth.is_platform(acting name, changed oid) FROM PUBLIC;
GRANT ALL ON FUNCTION auth.is_platform(acting name, changed oid) TO socle_PROJECT_owner;
GRANT ALL ON FUNCTION auth.is_platform(acting name, changed oid) TO anon;
GRANT ALL ON FUNCTION auth.is_platform(acting name, changed oid) TO authenticated;
GRANT ALL ON FUNCTION auth.is_platform(acting name, changed oid) TO service_role;
GRANT ALL ON FUNCTION auth.is_platform(acting name, changed oid) TO socle_PROJECT_auth;

REVOKE ALL ON FUNCTION auth.jwt() FROM PUBLIC;
GRANT ALL ON FUNCTION auth.jwt() TO anon;
GRANT ALL ON FUNCTION auth.jwt() TO authenticated;
GRANT ALL ON FUNCTION auth.jwt() TO service_role;
GRANT ALL ON FUNCTION auth.jwt() TO socle_reader;
GRANT ALL ON FUNCTION auth.jwt() TO socle_PROJECT_owner;

REVOKE ALL ON FUNCTION auth.password_written() FROM PUBLIC;

REVOKE ALL ON FUNCTION auth.refuse_written(id uuid) FROM PUBLIC;
GRANT ALL ON FUNCTION auth.refuse_written(id uuid) TO socle_PROJECT_owner;

REVOKE ALL ON FUNCTION auth.role() FROM PUBLIC;
GRANT ALL ON FUNCTION auth.role() TO anon;
GRANT ALL ON FUNCTION auth.role() TO authenticated;
GRANT ALL ON FUNCTION auth.role() TO service_role;
GRANT ALL ON FUNCTION auth.role() TO socle_reader;
GRANT ALL ON FUNCTION auth.role() TO socle_PROJECT_owner;

REVOKE ALL ON FUNCTION auth.store_password(new_hash text) FROM PUBLIC;
GRANT ALL ON FUNCTION auth.store_password(new_hash text) TO socle_PROJECT_auth;

REVOKE ALL ON FUNCTION auth.uid() FROM PUBLIC;
GRANT ALL ON FUNCTION auth.uid() TO anon;
GRANT ALL ON FUNCTION auth.uid() TO authenticated;
GRANT ALL ON FUNCTION auth.uid() TO service_role;
GRANT ALL ON FUNCTION auth.uid() TO socle_reader;
GRANT ALL ON FUNCTION auth.uid() TO socle_PROJECT_owner;

REVOKE ALL ON FUNCTION auth.users_inserted() FROM PUBLIC;

REVOKE ALL ON FUNCTION auth.users_updated() FROM PUBLIC;

REVOKE ALL ON FUNCTION realtime.broadcast_changes(topic_name text, event_name text, operation text, table_name text, table_schema text, new record, old record, level text) FROM PUBLIC;
GRANT ALL ON FUNCTION realtime.broadcast_changes(topic_name text, event_name text, operation text, table_name text, table_schema text, new record, old record, level text) TO anon;
GRANT ALL ON FUNCTION realtime.broadcast_changes(topic_name text, event_name text, operation text, table_name text, table_schema text, new record, old record, level text) TO authenticated;
GRANT ALL ON FUNCTION realtime.broadcast_changes(topic_name text, event_name text, operation text, table_name text, table_schema text, new record, old record, level text) TO service_role;
GRANT ALL ON FUNCTION realtime.broadcast_changes(topic_name text, event_name text, operation text, table_name text, table_schema text, new record, old record, level text) TO socle_PROJECT_owner;
GRANT ALL ON FUNCTION realtime.broadcast_changes(topic_name text, event_name text, operation text, table_name text, table_schema text, new record, old record, level text) TO socle_PROJECT_auth;

REVOKE ALL ON FUNCTION realtime.check_message() FROM PUBLIC;

REVOKE ALL ON FUNCTION realtime.put_message(topic text, event text, private boolean, payload jsonb, binary_payload bytea) FROM PUBLIC;
GRANT ALL ON FUNCTION realtime.put_message(topic text, event text, private boolean, payload jsonb, binary_payload bytea) TO anon;
GRANT ALL ON FUNCTION realtime.put_message(topic text, event text, private boolean, payload jsonb, binary_payload bytea) TO authenticated;
GRANT ALL ON FUNCTION realtime.put_message(topic text, event text, private boolean, payload jsonb, binary_payload bytea) TO service_role;
GRANT ALL ON FUNCTION realtime.put_message(topic text, event text, private boolean, payload jsonb, binary_payload bytea) TO socle_PROJECT_owner;
GRANT ALL ON FUNCTION realtime.put_message(topic text, event text, private boolean, payload jsonb, binary_payload bytea) TO socle_PROJECT_auth;

REVOKE ALL ON FUNCTION realtime.queue_message() FROM PUBLIC;

REVOKE ALL ON FUNCTION realtime.send(payload jsonb, event text, topic text, private boolean) FROM PUBLIC;
GRANT ALL ON FUNCTION realtime.send(payload jsonb, event text, topic text, private boolean) TO anon;
GRANT ALL ON FUNCTION realtime.send(payload jsonb, event text, topic text, private boolean) TO authenticated;
GRANT ALL ON FUNCTION realtime.send(payload jsonb, event text, topic text, private boolean) TO service_role;
GRANT ALL ON FUNCTION realtime.send(payload jsonb, event text, topic text, private boolean) TO socle_PROJECT_owner;
GRANT ALL ON FUNCTION realtime.send(payload jsonb, event text, topic text, private boolean) TO socle_PROJECT_auth;

REVOKE ALL ON FUNCTION realtime.send_binary(payload bytea, event text, topic text, private boolean) FROM PUBLIC;
GRANT ALL ON FUNCTION realtime.send_binary(payload bytea, event text, topic text, private boolean) TO anon;
GRANT ALL ON FUNCTION realtime.send_binary(payload bytea, event text, topic text, private boolean) TO authenticated;
GRANT ALL ON FUNCTION realtime.send_binary(payload bytea, event text, topic text, private boolean) TO service_role;
GRANT ALL ON FUNCTION realtime.send_binary(payload bytea, event text, topic text, private boolean) TO socle_PROJECT_owner;
GRANT ALL ON FUNCTION realtime.send_binary(payload bytea, event text, topic text, private boolean) TO socle_PROJECT_auth;

REVOKE ALL ON FUNCTION realtime.topic() FROM PUBLIC;
GRANT ALL ON FUNCTION realtime.topic() TO anon;
GRANT ALL ON FUNCTION realtime.topic() TO authenticated;
GRANT ALL ON FUNCTION realtime.topic() TO service_role;
GRANT ALL ON FUNCTION realtime.topic() TO socle_PROJECT_owner;
GRANT ALL ON FUNCTION realtime.topic() TO socle_PROJECT_auth;

REVOKE ALL ON FUNCTION socle.append_audit(new_seq bigint, new_entry text, new_hash bytea) FROM PUBLIC;
GRANT ALL ON FUNCTION socle.append_audit(new_seq bigint, new_entry text, new_hash bytea) TO socle_PROJECT_owner;

REVOKE ALL ON FUNCTION socle.capture(root oid) FROM PUBLIC;

REVOKE ALL ON FUNCTION socle.capture_delete() FROM PUBLIC;

REVOKE ALL ON FUNCTION socle.capture_insert() FROM PUBLIC;

REVOKE ALL ON FUNCTION socle.capture_truncate() FROM PUBLIC;

REVOKE ALL ON FUNCTION socle.capture_update() FROM PUBLIC;

REVOKE ALL ON FUNCTION socle.change_catalogue_version() FROM PUBLIC;

REVOKE ALL ON FUNCTION socle.claim_answer(key bytea) FROM PUBLIC;
GRANT ALL ON FUNCTION socle.claim_answer(key bytea) TO socle_PROJECT_request;
GRANT ALL ON FUNCTION socle.claim_answer(key bytea) TO socle_PROJECT_service;

REVOKE ALL ON FUNCTION socle.close_new_tables() FROM PUBLIC;

REVOKE ALL ON FUNCTION socle.create_event_slots() FROM PUBLIC;

REVOKE ALL ON FUNCTION socle.file_fact() FROM PUBLIC;

REVOKE ALL ON FUNCTION socle.find_answer(key bytea) FROM PUBLIC;
GRANT ALL ON FUNCTION socle.find_answer(key bytea) TO socle_PROJECT_request;
GRANT ALL ON FUNCTION socle.find_answer(key bytea) TO socle_PROJECT_service;

REVOKE ALL ON FUNCTION socle.has_unplanned_jobs() FROM PUBLIC;

REVOKE ALL ON FUNCTION socle.is_storage_table_unchanged(altered oid) FROM PUBLIC;

REVOKE ALL ON FUNCTION socle.keep_answer(key bytea, fingerprint bytea, status smallint, headers jsonb, body bytea) FROM PUBLIC;
GRANT ALL ON FUNCTION socle.keep_answer(key bytea, fingerprint bytea, status smallint, headers jsonb, body bytea) TO socle_PROJECT_request;
GRANT ALL ON FUNCTION socle.keep_answer(key bytea, fingerprint bytea, status smallint, headers jsonb, body bytea) TO socle_PROJECT_service;

REVOKE ALL ON FUNCTION socle.lend_users() FROM PUBLIC;

REVOKE ALL ON FUNCTION socle.listen(drop_unneeded boolean) FROM PUBLIC;

REVOKE ALL ON FUNCTION socle.listening(w socle.webhooks) FROM PUBLIC;

REVOKE ALL ON FUNCTION socle.lock_audit(OUT log text, OUT seq bigint, OUT hash bytea) FROM PUBLIC;
GRANT ALL ON FUNCTION socle.lock_audit(OUT log text, OUT seq bigint, OUT hash bytea) TO socle_PROJECT_owner;

REVOKE ALL ON FUNCTION socle.lock_audit_entries(OUT log text, OUT entries bigint) FROM PUBLIC;
GRANT ALL ON FUNCTION socle.lock_audit_entries(OUT log text, OUT entries bigint) TO socle_PROJECT_auth;
GRANT ALL ON FUNCTION socle.lock_audit_entries(OUT log text, OUT entries bigint) TO socle_PROJECT_owner;

REVOKE ALL ON FUNCTION socle.migration_fact() FROM PUBLIC;

REVOKE ALL ON FUNCTION socle.queue_request(method text, url text, params jsonb, headers jsonb, body bytea, timeout_milliseconds integer) FROM PUBLIC;

REVOKE ALL ON FUNCTION socle.record_migration(new_version text, new_name text, new_checksum text, new_applied_by uuid, new_duration_ms double precision) FROM PUBLIC;
GRANT ALL ON FUNCTION socle.record_migration(new_version text, new_name text, new_checksum text, new_applied_by uuid, new_duration_ms double precision) TO socle_PROJECT_owner;

REVOKE ALL ON FUNCTION socle.refuse_auth_ddl() FROM PUBLIC;

REVOKE ALL ON FUNCTION socle.refuse_extensions() FROM PUBLIC;

REVOKE ALL ON FUNCTION socle.refuse_platform_triggers() FROM PUBLIC;

REVOKE ALL ON FUNCTION socle.refuse_queue_ddl() FROM PUBLIC;

REVOKE ALL ON FUNCTION socle.refuse_references() FROM PUBLIC;

REVOKE ALL ON FUNCTION socle.refuse_storage_ddl() FROM PUBLIC;

REVOKE ALL ON FUNCTION socle.refuse_storage_drop() FROM PUBLIC;

REVOKE ALL ON FUNCTION socle.release(idle interval) FROM PUBLIC;

REVOKE ALL ON FUNCTION socle.remove_events(bytes_limit bigint, kept interval) FROM PUBLIC;

REVOKE ALL ON FUNCTION socle.remove_events(bytes_limit bigint) FROM PUBLIC;

REVOKE ALL ON FUNCTION socle.response_fact() FROM PUBLIC;

REVOKE ALL ON FUNCTION socle.return_users() FROM PUBLIC;

REVOKE ALL ON FUNCTION socle.session_fact() FROM PUBLIC;

REVOKE ALL ON FUNCTION socle.small_members(r json) FROM PUBLIC;
GRANT ALL ON FUNCTION socle.small_members(r json) TO socle_PROJECT_request;

REVOKE ALL ON FUNCTION socle.spread_events(kept interval) FROM PUBLIC;

REVOKE ALL ON FUNCTION socle.take_audit_entries(most integer) FROM PUBLIC;

REVOKE ALL ON FUNCTION socle.tell_of_change() FROM PUBLIC;

REVOKE ALL ON FUNCTION socle.user_fact() FROM PUBLIC;

REVOKE ALL ON FUNCTION socle.write_audit(new_entry text, new_mac bytea) FROM PUBLIC;
GRANT ALL ON FUNCTION socle.write_audit(new_entry text, new_mac bytea) TO socle_PROJECT_auth;
GRANT ALL ON FUNCTION socle.write_audit(new_entry text, new_mac bytea) TO socle_PROJECT_owner;

REVOKE ALL ON FUNCTION socle.write_fact(type text, data json) FROM PUBLIC;

REVOKE ALL ON FUNCTION storage.assign_bucket() FROM PUBLIC;

REVOKE ALL ON FUNCTION storage.bytes_replaced() FROM PUBLIC;

REVOKE ALL ON FUNCTION storage.change_bucket() FROM PUBLIC;

REVOKE ALL ON FUNCTION storage.check_bucket(id text, name text, file_size_limit bigint, allowed_mime_types text[]) FROM PUBLIC;
GRANT ALL ON FUNCTION storage.check_bucket(id text, name text, file_size_limit bigint, allowed_mime_types text[]) TO socle_PROJECT_owner;

REVOKE ALL ON FUNCTION storage.check_quota(default_files bigint, default_bytes bigint) FROM PUBLIC;

REVOKE ALL ON FUNCTION storage.containers_inserted() FROM PUBLIC;

REVOKE ALL ON FUNCTION storage.count_files(containers uuid[], files bigint[], bytes bigint[]) FROM PUBLIC;

REVOKE ALL ON FUNCTION storage.count_project(more_files bigint, more_bytes bigint) FROM PUBLIC;

REVOKE ALL ON FUNCTION storage.delete_bucket(bucket text) FROM PUBLIC;
GRANT ALL ON FUNCTION storage.delete_bucket(bucket text) TO socle_PROJECT_owner;

REVOKE ALL ON FUNCTION storage.extension(name text) FROM PUBLIC;
GRANT ALL ON FUNCTION storage.extension(name text) TO anon;
GRANT ALL ON FUNCTION storage.extension(name text) TO authenticated;
GRANT ALL ON FUNCTION storage.extension(name text) TO service_role;
GRANT ALL ON FUNCTION storage.extension(name text) TO socle_reader;
GRANT ALL ON FUNCTION storage.extension(name text) TO socle_PROJECT_owner;

REVOKE ALL ON FUNCTION storage.filename(name text) FROM PUBLIC;
GRANT ALL ON FUNCTION storage.filename(name text) TO anon;
GRANT ALL ON FUNCTION storage.filename(name text) TO authenticated;
GRANT ALL ON FUNCTION storage.filename(name text) TO service_role;
GRANT ALL ON FUNCTION storage.filename(name text) TO socle_reader;
GRANT ALL ON FUNCTION storage.filename(name text) TO socle_PROJECT_owner;

REVOKE ALL ON FUNCTION storage.files_deleted() FROM PUBLIC;

REVOKE ALL ON FUNCTION storage.files_inserted() FROM PUBLIC;

REVOKE ALL ON FUNCTION storage.files_updated() FROM PUBLIC;

REVOKE ALL ON FUNCTION storage.foldername(name text) FROM PUBLIC;
GRANT ALL ON FUNCTION storage.foldername(name text) TO anon;
GRANT ALL ON FUNCTION storage.foldername(name text) TO authenticated;
GRANT ALL ON FUNCTION storage.foldername(name text) TO service_role;
GRANT ALL ON FUNCTION storage.foldername(name text) TO socle_reader;
GRANT ALL ON FUNCTION storage.foldername(name text) TO socle_PROJECT_owner;

REVOKE ALL ON FUNCTION storage.insert_bucket() FROM PUBLIC;

REVOKE ALL ON FUNCTION storage.name_bucket() FROM PUBLIC;

REVOKE ALL ON FUNCTION storage.note_upsert() FROM PUBLIC;

REVOKE ALL ON FUNCTION storage.object_metadata(mime_type text, size bigint, sha256 bytea, cache_control text) FROM PUBLIC;
GRANT ALL ON FUNCTION storage.object_metadata(mime_type text, size bigint, sha256 bytea, cache_control text) TO anon;
GRANT ALL ON FUNCTION storage.object_metadata(mime_type text, size bigint, sha256 bytea, cache_control text) TO authenticated;
GRANT ALL ON FUNCTION storage.object_metadata(mime_type text, size bigint, sha256 bytea, cache_control text) TO service_role;
GRANT ALL ON FUNCTION storage.object_metadata(mime_type text, size bigint, sha256 bytea, cache_control text) TO socle_reader;
GRANT ALL ON FUNCTION storage.object_metadata(mime_type text, size bigint, sha256 bytea, cache_control text) TO socle_PROJECT_owner;

REVOKE ALL ON FUNCTION storage.parts_deleted() FROM PUBLIC;

REVOKE ALL ON FUNCTION storage.place_changes() FROM PUBLIC;

REVOKE ALL ON FUNCTION storage.place_keys(containers uuid[], sorts text[], texts text[], numbers bigint[], times timestamp with time zone[], ids uuid[], sign integer) FROM PUBLIC;

REVOKE ALL ON FUNCTION storage.place_pending(container uuid) FROM PUBLIC;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE storage.buckets TO anon;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE storage.buckets TO authenticated;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE storage.buckets TO service_role;
GRANT SELECT ON TABLE storage.buckets TO socle_reader;

REVOKE ALL ON FUNCTION storage.put_bucket(bucket storage.buckets, upsert boolean) FROM PUBLIC;
GRANT ALL ON FUNCTION storage.put_bucket(bucket storage.buckets, upsert boolean) TO socle_PROJECT_owner;

REVOKE ALL ON FUNCTION storage.refuse_bucket_changes() FROM PUBLIC;

REVOKE ALL ON FUNCTION storage.refuse_change() FROM PUBLIC;

REVOKE ALL ON FUNCTION storage.refuse_changes() FROM PUBLIC;

REVOKE ALL ON FUNCTION storage.sort_keys(full_file_name text, mime_type text, size bigint, created_at timestamp with time zone, updated_at timestamp with time zone) FROM PUBLIC;

REVOKE ALL ON FUNCTION storage.split_sorted(block storage.sorted_blocks) FROM PUBLIC;

REVOKE ALL ON FUNCTION storage.sync_bucket() FROM PUBLIC;

REVOKE ALL ON FUNCTION storage.update_updated_at_column() FROM PUBLIC;
GRANT ALL ON FUNCTION storage.update_updated_at_column() TO socle_PROJECT_owner;

REVOKE ALL ON FUNCTION storage.variant_deleted() FROM PUBLIC;

GRANT SELECT,INSERT ON TABLE auth.identities TO socle_PROJECT_owner;

GRANT SELECT,INSERT ON TABLE realtime.messages TO anon;
GRANT SELECT,INSERT ON TABLE realtime.messages TO authenticated;
GRANT SELECT,INSERT ON TABLE realtime.messages TO service_role;
GRANT INSERT ON TABLE realtime.messages TO socle_PROJECT_auth;

GRANT SELECT ON TABLE socle.applied_migrations TO socle_PROJECT_owner;

GRANT SELECT ON SEQUENCE socle.catalogue_changes TO socle_PROJECT_request;
GRANT SELECT ON SEQUENCE socle.catalogue_changes TO socle_PROJECT_service;

GRANT SELECT ON TABLE socle.catalogue_version TO socle_PROJECT_request;
GRANT SELECT ON TABLE socle.catalogue_version TO socle_PROJECT_service;

GRANT USAGE ON SEQUENCE socle.event_seq TO socle_PROJECT_request;

GRANT INSERT(relation) ON TABLE socle.events TO socle_PROJECT_request;

GRANT INSERT(operation) ON TABLE socle.events TO socle_PROJECT_request;

GRANT INSERT(record) ON TABLE socle.events TO socle_PROJECT_request;

GRANT INSERT(old) ON TABLE socle.events TO socle_PROJECT_request;

GRANT INSERT(size) ON TABLE socle.events TO socle_PROJECT_request;

GRANT INSERT(oversized) ON TABLE socle.events TO socle_PROJECT_request;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE storage.objects TO anon;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE storage.objects TO authenticated;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE storage.objects TO service_role;
GRANT SELECT ON TABLE storage.objects TO socle_reader;
