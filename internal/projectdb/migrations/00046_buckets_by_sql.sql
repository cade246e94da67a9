-- +goose Up
-- The project's owner creates, changes and deletes buckets by SQL, as migrations for Supabase do. storage.buckets stays a parent
-- without rows: an insert creates a container, an update or delete finds those of storage.containers, its child. Statements of any
-- other role stay questions, see 00024.

lock table storage.containers in access exclusive mode;

-- The owner writes these two columns, so they are computed by a trigger instead.
alter table storage.buckets alter column public drop expression, alter column file_size_limit drop expression;

-- No row violates these indexes. ON CONFLICT needs them.
create unique index buckets_id_key on storage.buckets (id);
create unique index buckets_name_key on storage.buckets (name);

-- +goose StatementBegin
create function storage.sync_bucket() returns trigger
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
	new.public := new.is_public;
	new.file_size_limit := new.max_file_size;
	return new;
end $$;
comment on function storage.sync_bucket is 'computes the columns of Supabase from those of the platform';

-- The rules of package object for applications. A name or id that is null is not checked.
create function storage.check_bucket(id text, name text, file_size_limit bigint, allowed_mime_types text[]) returns text[]
language plpgsql immutable set search_path = pg_catalog, pg_temp as $$
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
end $$;
comment on function storage.check_bucket is 'refuses what a bucket cannot have, and returns its MIME types in their normal form';

-- Called by the owner: directly, it creates and changes the same buckets.
create function storage.put_bucket(bucket storage.buckets, upsert boolean) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
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

-- As the platform: what a deletion cascades to fires triggers as its caller.
create function storage.delete_bucket(bucket text) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
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

-- INSERT with ON CONFLICT DO UPDATE fires the triggers of UPDATE for statements too, after those of INSERT.
create function storage.note_upsert() returns trigger
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
	if current_user::regrole = (select c.relowner from pg_class c where c.oid = tg_relid) then
		perform set_config('storage.upsert', case tg_op when 'UPDATE' then 'on' else 'off' end, true);
	end if;
	return null;
end $$;

create function storage.insert_bucket() returns trigger
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
	if current_user::regrole <> (select c.relowner from pg_class c where c.oid = tg_relid) then
		new.public := new.is_public;
		new.file_size_limit := new.max_file_size;
		return new;
	end if;
	perform storage.put_bucket(new, current_setting('storage.upsert', true) = 'on');
	return null;
end $$;
comment on function storage.insert_bucket is 'creates the container of a bucket that the owner inserts, instead of a row';

create function storage.change_bucket() returns trigger
language plpgsql set search_path = pg_catalog, pg_temp as $$
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
comment on function storage.change_bucket is 'checks what the owner changes of a bucket, and deletes what it deletes';

create or replace function storage.refuse_change() returns trigger
language plpgsql set search_path = pg_catalog, pg_temp as $$
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

create or replace function storage.refuse_bucket_changes() returns trigger
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
	if current_user::regrole = (select c.relowner from pg_class c where c.oid = tg_relid) then
		return null; -- the owner's, see storage.change_bucket
	end if;

	raise insufficient_privilege using constraint = 'storage_api_only',
		message = 'buckets and objects are changed by the Storage API only',
		detail = (select coalesce(json_agg(json_build_object('uuid', c.uuid, 'name', c.id, 'updated_at', c.updated_at)), '[]')
			from (select * from changed limit 1000) c);
end $$;
-- +goose StatementEnd
revoke execute on function storage.sync_bucket(), storage.check_bucket(text, text, bigint, text[]), storage.put_bucket(storage.buckets, boolean),
	storage.delete_bucket(text), storage.note_upsert(), storage.insert_bucket(), storage.change_bucket() from public;

-- Triggers of one kind fire in the order of their names.
create trigger change_bucket before update or delete on storage.containers
	for each row when (current_setting('is_superuser') = 'off') execute function storage.change_bucket();
create trigger sync_bucket before insert or update on storage.containers
	for each row when (new.public is distinct from new.is_public or new.file_size_limit is distinct from new.max_file_size)
	execute function storage.sync_bucket();
create trigger insert_bucket before insert on storage.buckets for each row execute function storage.insert_bucket();
create trigger note_insert before insert on storage.buckets for each statement execute function storage.note_upsert();
create trigger note_update before update on storage.buckets for each statement execute function storage.note_upsert();

-- Indexes of the two tables belong to the platform too.
-- +goose StatementBegin
create or replace function socle.refuse_storage_ddl() returns event_trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
	parents constant oid[] := array(
		select inhparent from pg_inherits where inhrelid in ('storage.containers'::regclass, 'storage.files'::regclass));
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
		raise insufficient_privilege using message = 'storage.buckets and storage.objects belong to the platform: only their policies can be changed';
	end if;
end $$;
-- +goose StatementEnd

-- +goose StatementBegin
create or replace function socle.is_storage_table_unchanged(altered oid) returns boolean
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
declare
	current_age constant integer := age(pg_current_xact_id()::xid);
begin
	return altered in (to_regclass('storage.buckets'), to_regclass('storage.objects'))
		and exists (
			select from pg_class c where c.oid = altered and c.relrowsecurity and not c.relforcerowsecurity
				and c.relowner = (select r.oid from pg_authid r where r.rolname = session_user)
				and c.relam = (select m.oid from pg_am m where m.amname = 'heap') and c.reloptions is null and c.reltablespace = 0
				and c.relpersistence = 'p' and c.relreplident = 'd' and c.reloftype = 0 and c.relhasindex = (c.relname = 'buckets') and not c.relhasrules)
		and not exists (select from pg_attribute x where x.attrelid = altered and age(x.xmin) <= current_age)
		and not exists (select from pg_attrdef x where x.adrelid = altered and age(x.xmin) <= current_age)
		and not exists (select from pg_constraint x where altered in (x.conrelid, x.confrelid) and age(x.xmin) <= current_age)
		and not exists (select from pg_trigger x where x.tgrelid = altered and age(x.xmin) <= current_age)
		and not exists (select from pg_inherits x where altered in (x.inhrelid, x.inhparent) and age(x.xmin) <= current_age);
end $$;
-- +goose StatementEnd
