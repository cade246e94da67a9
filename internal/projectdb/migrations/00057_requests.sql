-- +goose Up
-- HTTP requests by SQL, as users of pg_net know them, and the trigger of Supabase's database webhooks. SQL leaves a row, which the
-- server takes after the commit. The rows are in schema socle, so that they exist in a project with a schema net of its own too.

create table socle.http_requests (
	id bigint generated always as identity primary key,
	method text not null,
	url text not null,
	params jsonb not null,
	headers jsonb not null,
	body bytea,
	timeout_milliseconds integer not null
);
comment on table socle.http_requests is 'requests that no server has taken yet';

create table socle.http_responses (
	id bigint not null,
	status_code integer,
	content_type text,
	headers jsonb,
	content text,
	timed_out boolean,
	error_msg text,
	created timestamptz not null default now(),
	size integer not null -- bytes of headers and content
);
create index http_responses_id on socle.http_responses (id);
create index http_responses_created on socle.http_responses (created);
comment on table socle.http_responses is 'outcomes of requests, for six hours';
-- Privileges decide alone: all access is by functions and views.
alter table socle.http_requests disable row level security;
alter table socle.http_responses disable row level security;

-- +goose StatementBegin
create function socle.queue_request(method text, url text, params jsonb, headers jsonb, body bytea, timeout_milliseconds integer)
returns bigint language plpgsql set search_path = pg_catalog, pg_temp as $$
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
-- +goose StatementEnd
revoke execute on function socle.queue_request(text, text, jsonb, jsonb, bytea, integer) from public;

-- +goose StatementBegin
do $migration$
begin
	if (select nspowner from pg_namespace where nspname = 'net') is distinct from (
		select nspowner from pg_namespace where nspname = 'socle') then
		return;
	end if;

	create or replace function net.http_get(url text, params jsonb default '{}', headers jsonb default '{}',
		timeout_milliseconds integer default 5000) returns bigint
	language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
	begin
		return socle.queue_request('GET', url, params, headers, null, timeout_milliseconds);
	end $$;
	create or replace function net.http_post(url text, body jsonb default '{}', params jsonb default '{}',
		headers jsonb default '{"Content-Type": "application/json"}', timeout_milliseconds integer default 5000) returns bigint
	language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
	begin
		return socle.queue_request('POST', url, params, headers, convert_to(body::text, 'UTF8'), timeout_milliseconds);
	end $$;
	create or replace function net.http_delete(url text, params jsonb default '{}', headers jsonb default '{}',
		timeout_milliseconds integer default 5000, body jsonb default null) returns bigint
	language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
	begin
		return socle.queue_request('DELETE', url, params, headers, convert_to(body::text, 'UTF8'), timeout_milliseconds);
	end $$;
	drop function net.refuse_request();

	create view net.http_request_queue as
	select id, method, url, headers, body, timeout_milliseconds from socle.http_requests;
	create view net._http_response as
	select id, status_code, content_type, headers, content, timed_out, error_msg, created from socle.http_responses
	where created > now() - interval '6 hours';
end $migration$;

do $migration$
begin
	if to_regnamespace('supabase_functions') is not null then
		return;
	end if;

	create schema supabase_functions;
	-- Arguments: URL, method, headers, parameters, timeout in milliseconds. It runs as the role that changes the row, since the
	-- project's casts to json may be part of it.
	create function supabase_functions.http_request() returns trigger
	language plpgsql set search_path = pg_catalog, pg_temp as $$
	declare
		url constant text := nullif(tg_argv[0], 'null');
		method constant text := upper(nullif(tg_argv[1], 'null'));
		headers constant jsonb := coalesce(nullif(tg_argv[2], 'null'), '{"Content-Type": "application/json"}');
		params constant jsonb := coalesce(nullif(tg_argv[3], 'null'), '{}');
		payload jsonb;
	begin
		if url is null or method is null or method not in ('GET', 'POST') then
			raise invalid_parameter_value using message = 'the arguments of http_request are a URL, and the method GET or POST';
		end if;
		if method = 'POST' then
			payload := jsonb_build_object('type', tg_op, 'table', tg_table_name, 'schema', tg_table_schema,
				'record', case when tg_op <> 'DELETE' then to_jsonb(new) end,
				'old_record', case when tg_op <> 'INSERT' then to_jsonb(old) end);
		end if;
		perform supabase_functions.queue_request(method, url, params, headers, payload, nullif(tg_argv[4], 'null')::integer);
		return coalesce(new, old);
	end $$;
	create function supabase_functions.queue_request(method text, url text, params jsonb, headers jsonb, payload jsonb, timeout integer)
	returns bigint language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
	begin
		return socle.queue_request(method, url, params, headers, convert_to(payload::text, 'UTF8'), coalesce(timeout, 1000));
	end $$;
	revoke execute on all functions in schema supabase_functions from public;
	grant usage on schema supabase_functions to anon, authenticated, service_role;
	grant execute on function supabase_functions.queue_request(text, text, jsonb, jsonb, jsonb, integer)
		to anon, authenticated, service_role;
end $migration$;

-- Triggers may refer to supabase_functions.http_request, a contract: no migration drops it.
create or replace function socle.refuse_references() returns event_trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
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
						to_regproc('storage.foldername'), to_regproc('storage.filename'), to_regproc('storage.extension'), to_regproc('realtime.topic')))
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
-- +goose StatementEnd
