-- +goose Up
-- End users of a project: the tables and functions of Supabase Auth, as far as Socle uses them. A login of the project's own, the
-- auth login, owns the tables: triggers of the project on auth.users run with its rights, and foreign keys to auth.users are
-- checked with them. Projects refer to auth.users (id) and to the four functions, so no later migration drops or renames these.
-- Statements of the platform's login never change rows of these tables, since a trigger would run as a superuser.

create table auth.users (
	instance_id uuid,
	id uuid primary key,
	aud text,
	role text,
	email text,
	encrypted_password text,
	email_confirmed_at timestamptz,
	invited_at timestamptz,
	confirmation_token text,
	confirmation_sent_at timestamptz,
	recovery_token text,
	recovery_sent_at timestamptz,
	email_change_token_new text,
	email_change text,
	email_change_sent_at timestamptz,
	last_sign_in_at timestamptz,
	raw_app_meta_data jsonb,
	raw_user_meta_data jsonb,
	is_super_admin boolean,
	created_at timestamptz,
	updated_at timestamptz,
	phone text default null constraint users_phone_key unique,
	phone_confirmed_at timestamptz,
	phone_change text default '',
	phone_change_token text default '',
	phone_change_sent_at timestamptz,
	confirmed_at timestamptz generated always as (least(email_confirmed_at, phone_confirmed_at)) stored,
	email_change_token_current text default '',
	email_change_confirm_status smallint default 0
		constraint users_email_change_confirm_status_check check (email_change_confirm_status between 0 and 2),
	banned_until timestamptz,
	reauthentication_token text default '',
	reauthentication_sent_at timestamptz,
	is_sso_user boolean not null default false,
	deleted_at timestamptz,
	is_anonymous boolean not null default false
);
comment on column auth.users.encrypted_password is 'argon2id; bcrypt of imported users until their next log-in';
comment on column auth.users.confirmation_token is 'unused, like the other columns of tokens: see one_time_tokens';
create unique index users_email_partial_key on auth.users (email) where is_sso_user = false;
create index users_created_at on auth.users (created_at, id);
create index users_anonymous on auth.users (created_at) where is_anonymous;

create table auth.identities (
	provider_id text not null,
	user_id uuid not null constraint identities_user_id_fkey references auth.users on delete cascade,
	identity_data jsonb not null,
	provider text not null,
	last_sign_in_at timestamptz,
	created_at timestamptz,
	updated_at timestamptz,
	email text generated always as (lower(identity_data ->> 'email')) stored,
	id uuid primary key default gen_random_uuid(),
	constraint identities_provider_id_provider_unique unique (provider_id, provider)
);
create index identities_user_id_idx on auth.identities (user_id);

create table auth.sessions (
	id uuid primary key,
	user_id uuid not null constraint sessions_user_id_fkey references auth.users on delete cascade,
	created_at timestamptz not null default now(),
	updated_at timestamptz not null default now(),
	factor_id uuid,
	aal text not null default 'aal1' constraint sessions_aal check (aal in ('aal1', 'aal2', 'aal3')),
	not_after timestamptz,
	refreshed_at timestamptz,
	user_agent text,
	ip inet,
	tag text,
	refresh_token_counter bigint not null default 0
);
comment on column auth.sessions.refresh_token_counter is
	'generation of the valid refresh token; the token itself is a MAC of session and generation, and stored nowhere';
create index sessions_user_id_idx on auth.sessions (user_id, created_at);
create index sessions_refreshed_at on auth.sessions ((coalesce(refreshed_at, created_at)));

create table auth.mfa_amr_claims (
	session_id uuid not null constraint mfa_amr_claims_session_id_fkey references auth.sessions on delete cascade,
	created_at timestamptz not null default now(),
	updated_at timestamptz not null default now(),
	authentication_method text not null,
	id uuid primary key default gen_random_uuid(),
	constraint mfa_amr_claims_session_id_authentication_method_pkey unique (session_id, authentication_method)
);

create table auth.one_time_tokens (
	id uuid primary key,
	user_id uuid not null constraint one_time_tokens_user_id_fkey references auth.users on delete cascade,
	token_type text not null constraint one_time_tokens_type check (token_type in ('confirmation_token', 'reauthentication_token',
		'recovery_token', 'email_change_token_new', 'email_change_token_current', 'phone_change_token')),
	relates_to text not null,
	created_at timestamptz not null default now(),
	updated_at timestamptz not null default now(),
	attempts integer not null default 0,
	flow_state_id uuid,
	verification_type text not null
);
comment on table auth.one_time_tokens is 'the token in a link and the six digits are MACs of the id, and stored nowhere';
comment on column auth.one_time_tokens.attempts is 'wrong codes so far';
comment on column auth.one_time_tokens.verification_type is 'of the mail that the token was sent in';
create unique index one_time_tokens_user_id_token_type_key on auth.one_time_tokens (user_id, token_type);
create index one_time_tokens_created_at on auth.one_time_tokens (created_at);

create table auth.flow_state (
	id uuid primary key,
	user_id uuid constraint flow_state_user_id_fkey references auth.users on delete cascade,
	code_challenge_method text not null constraint flow_state_method check (code_challenge_method in ('s256', 'plain')),
	code_challenge text not null,
	provider_type text not null,
	authentication_method text not null,
	auth_code_issued_at timestamptz,
	created_at timestamptz not null default now(),
	updated_at timestamptz not null default now()
);
comment on column auth.flow_state.auth_code_issued_at is 'null until the code is issued, which is a MAC of the id';
create index flow_state_created_at on auth.flow_state (created_at);
create index flow_state_user_id on auth.flow_state (user_id);

create table auth.mfa_factors (
	id uuid primary key,
	user_id uuid not null constraint mfa_factors_user_id_fkey references auth.users on delete cascade,
	friendly_name text,
	factor_type text not null constraint mfa_factors_type check (factor_type in ('totp', 'phone', 'webauthn')),
	status text not null constraint mfa_factors_status check (status in ('unverified', 'verified')),
	created_at timestamptz not null default now(),
	updated_at timestamptz not null default now(),
	secret text,
	phone text,
	last_challenged_at timestamptz,
	last_step bigint not null default 0
);
comment on column auth.mfa_factors.secret is 'sealed under a key of the project, in base64';
comment on column auth.mfa_factors.last_step is 'time step of the last code that was used';
create index mfa_factors_user_id_idx on auth.mfa_factors (user_id);
create unique index mfa_factors_user_friendly_name_unique on auth.mfa_factors (friendly_name, user_id)
	where trim(friendly_name) <> '';

create table auth.mfa_challenges (
	id uuid primary key,
	factor_id uuid not null constraint mfa_challenges_auth_factor_id_fkey references auth.mfa_factors on delete cascade,
	created_at timestamptz not null default now(),
	verified_at timestamptz,
	ip_address inet not null
);
create index mfa_challenges_factor_id on auth.mfa_challenges (factor_id);
create index mfa_challenges_created_at on auth.mfa_challenges (created_at);

create table auth.audit_log_entries (
	instance_id uuid,
	id uuid primary key,
	payload json,
	created_at timestamptz,
	ip_address text not null default ''
);
create index audit_log_entries_created_at on auth.audit_log_entries (created_at);

create table auth.mails (
	id uuid primary key,
	recipient text not null,
	kind text not null,
	subject text not null,
	html text not null,
	body text not null,
	created_at timestamptz not null default now()
);
comment on table auth.mails is 'mails that were not sent, since the instance has no mail server; the newest ones only';
create index mails_created_at on auth.mails (created_at, id);

create table auth.attempts (
	key bytea primary key,
	count integer not null,
	resets_at timestamptz not null
);
comment on table auth.attempts is 'counts of attempts for rate limits';
create index attempts_resets_at on auth.attempts (resets_at);

-- Closed by privileges: only the auth login and backups read these tables. Row level security would keep the owner from the
-- columns that it may read.
alter table auth.users disable row level security;
alter table auth.identities disable row level security;
alter table auth.sessions disable row level security;
alter table auth.mfa_amr_claims disable row level security;
alter table auth.one_time_tokens disable row level security;
alter table auth.flow_state disable row level security;
alter table auth.mfa_factors disable row level security;
alter table auth.mfa_challenges disable row level security;
alter table auth.audit_log_entries disable row level security;
alter table auth.mails disable row level security;
alter table auth.attempts disable row level security;

-- The planner replaces a call by the body, so a policy costs no more than current_setting().
create function auth.jwt() returns jsonb language sql stable parallel safe
	return nullif(current_setting('request.jwt.claims', true), '')::jsonb;
create function auth.uid() returns uuid language sql stable parallel safe
	return (nullif(current_setting('request.jwt.claims', true), '')::jsonb ->> 'sub')::uuid;
create function auth.role() returns text language sql stable parallel safe
	return nullif(current_setting('request.jwt.claims', true), '')::jsonb ->> 'role';
create function auth.email() returns text language sql stable parallel safe
	return nullif(current_setting('request.jwt.claims', true), '')::jsonb ->> 'email';
comment on function auth.uid() is 'id of the end user of the request, null for a key';
revoke execute on function auth.jwt(), auth.uid(), auth.role(), auth.email() from public;
grant usage on schema auth to anon, authenticated, service_role, socle_reader;
grant execute on function auth.jwt(), auth.uid(), auth.role(), auth.email() to anon, authenticated, service_role, socle_reader;

-- A trigger of the project runs as the owner of auth.users. It can't change the tables themselves, which would break migrations.
-- +goose StatementBegin
create function socle.refuse_auth_ddl() returns event_trigger
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
	if (select oid from pg_roles where rolname = current_user and not rolsuper)
		= (select relowner from pg_class where oid = to_regclass('auth.users')) then
		raise insufficient_privilege using message = 'code that runs as the login of end users cannot change the schema';
	end if;
end $$;
-- +goose StatementEnd
revoke execute on function socle.refuse_auth_ddl() from public;
create event trigger socle_refuse_auth_ddl on ddl_command_start execute function socle.refuse_auth_ddl();

-- Projects may refer to end users: foreign keys to auth.users, triggers on it, and anything that calls one of the four functions.
-- +goose StatementBegin
create or replace function socle.refuse_references() returns event_trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
	referred text;
begin
	if (select rolsuper from pg_authid where rolname = session_user) then
		return;
	end if;

	-- Everything here is found by an index, since every DDL statement of the tenant pays for it: what is in a schema
	-- depends on it, a row type belongs to its table, an array type to its element type.
	with schemas as (
		select 'pg_namespace'::regclass as class, oid as id from pg_namespace
		where nspname in ('socle', 'storage', 'forms', 'auth', 'realtime')
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
				and id in (to_regproc('auth.uid'), to_regproc('auth.role'), to_regproc('auth.jwt'), to_regproc('auth.email')))
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
				select from pg_trigger t where t.oid = d.objid and t.tgrelid = d.refobjid)))
	limit 1;
	if found then
		raise insufficient_privilege using message = referred || ' belongs to the platform: nothing can refer to it';
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

-- The auth login writes the audit entries of changes that administrators make to end users.
create or replace function socle.write_audit(new_entry text, new_mac bytea) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
	new_key constant text := new_entry::jsonb ->> 'key';
begin
	if session_user not in (current_database() || '_owner', current_database() || '_auth')
		and not (select rolsuper from pg_roles where rolname = session_user) then
		raise insufficient_privilege using message = 'the audit log is written by the platform';
	end if;
	insert into socle.audit_pending (entry, mac, key) values (new_entry, new_mac, new_key);

	-- After the insert: it waits for the transaction that moves an entry with the same key into the chain.
	if new_key is not null and exists (select from socle.audit where entry::jsonb ->> 'key' = new_key) then
		raise unique_violation using constraint = 'audit_pending_key', message = 'the chain has an entry with this key';
	end if;
end $$;

create or replace function socle.lock_audit_entries(out log text, out entries bigint)
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
	if session_user not in (current_database() || '_owner', current_database() || '_auth')
		and not (select rolsuper from pg_roles where rolname = session_user) then
		raise insufficient_privilege using message = 'the audit log is written by the platform';
	end if;
	lock table socle.audit_pending in share row exclusive mode;
	select h.log, h.seq + (select count(*) from socle.audit_pending) into strict log, entries from socle.audit_head h;
end $$;
-- +goose StatementEnd
