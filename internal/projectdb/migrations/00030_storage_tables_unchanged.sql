-- +goose Up
-- ALTER TABLE that leaves storage.buckets or storage.objects as it is: every migration for Supabase enables row level security on them.

-- +goose StatementBegin
create or replace function socle.refuse_storage_ddl() returns event_trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
	if (select rolsuper from pg_authid where rolname = session_user) then
		return;
	end if;

	perform from pg_event_trigger_ddl_commands() d
	left join pg_trigger t on d.classid = 'pg_trigger'::regclass and t.oid = d.objid
	left join pg_constraint k on d.classid = 'pg_constraint'::regclass and k.oid = d.objid
	join pg_inherits i on i.inhparent = coalesce(t.tgrelid, k.conrelid, d.objid)
	where (t.oid is not null or k.oid is not null or d.classid = 'pg_class'::regclass) and d.command_tag <> 'COMMENT'
		and i.inhrelid in ('storage.containers'::regclass, 'storage.files'::regclass)
		and not (d.command_tag = 'ALTER TABLE' and d.classid = 'pg_class'::regclass and socle.is_storage_table_unchanged(d.objid));
	if found then
		raise insufficient_privilege using message = 'storage.buckets and storage.objects belong to the platform: only their policies can be changed';
	end if;
end $$;

-- ALTER TABLE writes the row of pg_class also if it changes nothing there, so that row is compared with its only valid values. Of every
-- other catalog, this transaction may have written no row about the table. Removed rows are refused by socle.refuse_storage_drop.
create function socle.is_storage_table_unchanged(altered oid) returns boolean
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
declare
	current_age constant integer := age(pg_current_xact_id()::xid);
begin
	return altered in (to_regclass('storage.buckets'), to_regclass('storage.objects'))
		and exists (
			select from pg_class c where c.oid = altered and c.relrowsecurity and not c.relforcerowsecurity
				and c.relowner = (select r.oid from pg_authid r where r.rolname = session_user)
				and c.relam = (select m.oid from pg_am m where m.amname = 'heap') and c.reloptions is null and c.reltablespace = 0
				and c.relpersistence = 'p' and c.relreplident = 'd' and c.reloftype = 0 and not c.relhasindex and not c.relhasrules)
		and not exists (select from pg_attribute x where x.attrelid = altered and age(x.xmin) <= current_age)
		and not exists (select from pg_attrdef x where x.adrelid = altered and age(x.xmin) <= current_age)
		and not exists (select from pg_constraint x where altered in (x.conrelid, x.confrelid) and age(x.xmin) <= current_age)
		and not exists (select from pg_trigger x where x.tgrelid = altered and age(x.xmin) <= current_age)
		and not exists (select from pg_inherits x where altered in (x.inhrelid, x.inhparent) and age(x.xmin) <= current_age);
end $$;
comment on function socle.is_storage_table_unchanged is 'reports whether an ALTER TABLE in this transaction has left the table as it was';
-- +goose StatementEnd
revoke execute on function socle.is_storage_table_unchanged(oid) from public;
