-- +goose Up
-- Policies and views of the project may read auth.users, as on Supabase. Reading it takes the privileges that it always took: those
-- of the view's owner, or of the caller whom a policy judges. So no later migration drops or renames a column of auth.users.

-- +goose StatementBegin
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
						to_regproc('storage.foldername'), to_regproc('storage.filename'), to_regproc('storage.extension')))
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
