-- +goose Up
-- Schema extensions with uuid-ossp and pgcrypto, as every Supabase database has it: schemas written for it call
-- uuid_generate_v4() and extensions.crypt() without CREATE EXTENSION.
--
-- An extension that is installed in another schema stays there. A schema that is not the platform's, or that has an object of
-- a user, stays as it is: the scripts of extensions run as a superuser and would find that object.

-- +goose StatementBegin
do $$
declare
	wanted text;
begin
	create schema if not exists extensions;
	if exists (
		select from pg_catalog.pg_namespace n
		where n.nspname = 'extensions' and (n.nspowner <> current_user::pg_catalog.regrole
			or exists (select from pg_catalog.aclexplode(n.nspacl) a where a.grantee <> n.nspowner and a.privilege_type = 'CREATE')
			or exists (
				select from pg_catalog.pg_depend d
				where d.refclassid = 'pg_catalog.pg_namespace'::pg_catalog.regclass and d.refobjid = n.oid
					and d.classid <> 'pg_catalog.pg_extension'::pg_catalog.regclass and not exists (
					select from pg_catalog.pg_depend x where x.classid = d.classid and x.objid = d.objid and x.deptype = 'e'))))
	then
		return;
	end if;

	grant usage on schema extensions to public;
	foreach wanted in array '{uuid-ossp,pgcrypto}'::text[] loop
		if exists (select from pg_catalog.pg_available_extensions where name = wanted)
			and not exists (select from pg_catalog.pg_extension where extname = wanted) then
			execute pg_catalog.format('create extension %I schema extensions', wanted);
		end if;
	end loop;
end $$;
-- +goose StatementEnd
