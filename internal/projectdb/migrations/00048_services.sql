-- +goose Up
-- What SQL for Supabase names of its services: realtime.messages with its functions, cron and net. Policies and schedules are kept
-- for the capability; nothing is delivered, run or requested yet, and each call says so. A project that has a schema cron or net of
-- its own keeps it.

create table realtime.messages (
	topic text not null,
	extension text not null,
	payload jsonb,
	event text,
	private boolean default false,
	updated_at timestamp not null default now(),
	inserted_at timestamp not null default now(),
	id uuid not null default gen_random_uuid(),
	primary key (id, inserted_at)
);
comment on table realtime.messages is 'has policies for private channels, and no rows';
alter table realtime.messages enable row level security;

create function realtime.topic() returns text language sql stable parallel safe
	return nullif(current_setting('realtime.topic', true), '');

-- +goose StatementBegin
create function realtime.send(payload jsonb, event text, topic text, private boolean default true) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
	raise notice 'realtime.send: the message is left out, since messages are not delivered yet';
end $$;

create function realtime.broadcast_changes(topic_name text, event_name text, operation text, table_name text, table_schema text,
	new record, old record, level text default 'ROW') returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
	raise notice 'realtime.broadcast_changes: the change is left out, since messages are not delivered yet';
end $$;

create function realtime.refuse_rows() returns trigger
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
	raise feature_not_supported using message = 'realtime.messages has no rows: messages are not delivered yet';
end $$;
-- +goose StatementEnd
create trigger refuse_rows before insert on realtime.messages for each statement execute function realtime.refuse_rows();
revoke execute on function realtime.topic(), realtime.send(jsonb, text, text, boolean), realtime.refuse_rows(),
	realtime.broadcast_changes(text, text, text, text, text, record, record, text) from public;
grant usage on schema realtime to anon, authenticated, service_role;
grant execute on function realtime.topic(), realtime.send(jsonb, text, text, boolean),
	realtime.broadcast_changes(text, text, text, text, text, record, record, text) to anon, authenticated, service_role;
grant select, insert on realtime.messages to anon, authenticated, service_role;

-- +goose StatementBegin
do $migration$
begin
	if to_regnamespace('cron') is not null then
		return;
	end if;

	create schema cron;
	create table cron.job (
		jobid bigint primary key,
		schedule text not null,
		command text not null,
		nodename text not null default 'localhost',
		nodeport integer not null default 5432,
		database text not null default 'postgres',
		username text not null default 'postgres',
		active boolean not null default true,
		jobname text unique
	);
	comment on table cron.job is 'schedules that the owner has made; none runs yet';
	alter table cron.job disable row level security;
	create table cron.job_run_details (
		jobid bigint,
		runid bigint primary key,
		job_pid integer,
		database text,
		username text,
		command text,
		status text,
		return_message text,
		start_time timestamptz,
		end_time timestamptz
	);
	comment on table cron.job_run_details is 'has no rows yet';
	alter table cron.job_run_details disable row level security;

	create function cron.check_schedule(schedule text) returns void
	language plpgsql immutable set search_path = pg_catalog, pg_temp as $$
	declare
		fields constant text[] := regexp_split_to_array(btrim(schedule, E' \t'), '[ \t]+');
		lowest constant integer[] := '{0,0,1,1,0}';
		highest constant integer[] := '{59,23,31,12,7}';
		names constant text[] := array[null, null, null, 'jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec', 'sun|mon|tue|wed|thu|fri|sat'];
		part text;
		parts text[];
		valid boolean := coalesce(cardinality(fields) = 5 and octet_length(schedule) <= 255, false);
	begin
		if schedule ~* '^ *@(yearly|annually|monthly|weekly|daily|midnight|hourly|reboot) *$' or schedule ~ '^ *([1-9]|[1-5][0-9]) +seconds? *$' then
			return;
		end if;

		for i in 1 .. case when valid then 5 else 0 end loop
			foreach part in array string_to_array(fields[i], ',') loop
				continue when i = 3 and part = '$'; -- the last day of the month
				continue when part ~* ('^(' || names[i] || ')(-(' || names[i] || '))?$');
				parts := regexp_match(part, '^(?:\*|([0-9]{1,2})(?:-([0-9]{1,2}))?)(?:/([0-9]{1,2}))?$');
				valid := valid and parts is not null and coalesce(parts[1]::integer between lowest[i] and highest[i], true)
					and coalesce(parts[2]::integer between parts[1]::integer and highest[i], true) and coalesce(parts[3]::integer > 0, true);
			end loop;
		end loop;
		if not valid then
			raise invalid_parameter_value using message = format('invalid schedule: %s', left(schedule, 255)),
				hint = 'Use cron format (e.g. 5 4 * * *), or interval format ''[1-59] seconds''';
		end if;
	end $$;

	create function cron.put_job(new_name text, new_schedule text, new_command text) returns bigint
	language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
	declare
		job bigint;
	begin
		perform cron.check_schedule(new_schedule);
		if octet_length(new_name) > 255 or new_command is null or octet_length(new_command) > 65536 then
			raise invalid_parameter_value using message = 'cron.schedule: a name has at most 255 bytes, a command at most 65536';
		end if;

		lock table cron.job in share row exclusive mode; -- each of two calls at once counts the job of the other
		insert into cron.job as j (jobid, jobname, schedule, command)
		select coalesce(max(k.jobid), 0) + 1, new_name, new_schedule, new_command from cron.job k
		on conflict (jobname) do update set schedule = excluded.schedule, command = excluded.command, active = true
		returning j.jobid into job;
		if (select count(*) from cron.job) > 200 then
			raise program_limit_exceeded using message = 'cron.schedule: a project has at most 200 jobs';
		end if;
		raise notice 'job % is recorded: schedules do not run yet', coalesce(new_name, job::text);
		return job;
	end $$;

	create function cron.schedule(job_name text, schedule text, command text) returns bigint language sql
		return cron.put_job(job_name, schedule, command);
	create function cron.schedule(schedule text, command text) returns bigint language sql
		return cron.put_job(null, schedule, command);
	create function cron.schedule_in_database(job_name text, schedule text, command text, database text, username text default null,
		active boolean default true) returns bigint
	language plpgsql set search_path = pg_catalog, pg_temp as $$
	begin
		raise feature_not_supported using message = 'cron.schedule_in_database: a project has one database, use cron.schedule';
	end $$;

	create function cron.unschedule(job_id bigint) returns boolean
	language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
	begin
		delete from cron.job j where j.jobid = job_id;
		if not found then
			raise undefined_object using message = format('could not find valid entry for job ''%s''', job_id);
		end if;
		return true;
	end $$;
	create function cron.unschedule(job_name text) returns boolean
	language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
	begin
		delete from cron.job j where j.jobname = job_name;
		if not found then
			raise undefined_object using message = format('could not find valid entry for job ''%s''', left(job_name, 255));
		end if;
		return true;
	end $$;
	create function cron.alter_job(job_id bigint, schedule text default null, command text default null, database text default null,
		username text default null, active boolean default null) returns void
	language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
	begin
		if database is not null or username is not null then
			raise feature_not_supported using message = 'cron.alter_job: database and username cannot be changed';
		end if;
		if schedule is not null then
			perform cron.check_schedule(schedule);
		end if;
		if octet_length(command) > 65536 then
			raise invalid_parameter_value using message = 'cron.alter_job: a command has at most 65536 bytes';
		end if;
		update cron.job j set schedule = coalesce(alter_job.schedule, j.schedule), command = coalesce(alter_job.command, j.command),
			active = coalesce(alter_job.active, j.active)
		where j.jobid = job_id;
		if not found then
			raise undefined_object using message = format('could not find valid entry for job ''%s''', job_id);
		end if;
	end $$;
	revoke execute on all functions in schema cron from public;
end $migration$;

do $migration$
begin
	if to_regnamespace('net') is not null then
		return;
	end if;

	create schema net;
	create function net.refuse_request() returns bigint
	language plpgsql set search_path = pg_catalog, pg_temp as $$
	begin
		raise feature_not_supported using message = 'SQL sends no HTTP requests yet',
			hint = 'Have the application send the request, or leave the call out.';
	end $$;
	create function net.http_get(url text, params jsonb default '{}', headers jsonb default '{}', timeout_milliseconds integer default 5000)
		returns bigint language sql return net.refuse_request();
	create function net.http_post(url text, body jsonb default '{}', params jsonb default '{}',
		headers jsonb default '{"Content-Type": "application/json"}', timeout_milliseconds integer default 5000)
		returns bigint language sql return net.refuse_request();
	create function net.http_delete(url text, params jsonb default '{}', headers jsonb default '{}', timeout_milliseconds integer default 5000,
		body jsonb default null) returns bigint language sql return net.refuse_request();
	revoke execute on all functions in schema net from public;
	grant usage on schema net to anon, authenticated, service_role;
	grant execute on all functions in schema net to anon, authenticated, service_role;
end $migration$;

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
				or (nspname in ('cron', 'net') and nspowner = (select nspowner from pg_namespace where nspname = 'socle'))
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

create or replace function socle.refuse_storage_ddl() returns event_trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
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

create or replace function socle.is_storage_table_unchanged(altered oid) returns boolean
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
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

create or replace function socle.refuse_storage_drop() returns event_trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
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
-- +goose StatementEnd
