-- +goose Up
-- Files of applications: storage.buckets and storage.objects, with the columns of Supabase Storage, so that its policies work unchanged.
-- Both are parents, in the sense of inheritance, of the tables that have the rows: storage.containers and storage.files, which the
-- previous release writes as before. A parent has policies and no rows. It belongs to the project's owner, who creates its policies.
-- A statement on a parent reads its children's rows under its policies. A change of a parent always fails after the policies have
-- allowed it, an insert by a constraint, which PostgreSQL checks after the policies, others by triggers. So it is a question about
-- rights. Changes are made by the platform's login, to the children. No later migration drops or
-- renames a parent, its columns, or the functions of policies.

lock table storage.containers in access exclusive mode;
lock table storage.files in access exclusive mode;

alter table storage.containers
	add column id text collate "C",
	add column owner uuid,
	add column owner_id text,
	add column type text not null default 'STANDARD',
	add column avif_autodetection boolean default false,
	add column public boolean generated always as (is_public) stored,
	add column file_size_limit bigint generated always as (max_file_size) stored;
comment on column storage.containers.id is 'the bucket''s name for applications; unlike name, it never changes';
update storage.containers set id = case when deleting then uuid::text else name end;
alter table storage.containers alter column id set not null, add constraint containers_id_key unique (id);

alter table storage.files
	add column bucket_id text collate "C",
	add column owner uuid,
	add column owner_id text,
	add column user_metadata jsonb,
	add column cache_control text;
comment on column storage.files.bucket_id is 'id of the container';
comment on column storage.files.owner_id is 'the end user who uploaded the file';

-- No file is added, removed or moved.
alter table storage.files disable trigger files_updated;
update storage.files f set bucket_id = c.id from storage.containers c where c.uuid = f.container_uuid;
alter table storage.files enable trigger files_updated;

-- +goose StatementBegin
create function storage.object_metadata(mime_type text, size bigint, sha256 bytea, cache_control text) returns jsonb
language plpgsql immutable parallel safe set search_path = pg_catalog, pg_temp as $$
begin
	return jsonb_build_object('eTag', '"' || encode(substr(sha256, 1, 16), 'hex') || '"', 'size', size, 'mimetype', mime_type,
		'cacheControl', coalesce(cache_control, 'no-cache'));
end $$;
-- +goose StatementEnd

alter table storage.files
	alter column bucket_id set not null,
	add column id uuid generated always as (uuid) stored,
	add column name text collate "C" generated always as (full_file_name) stored,
	add column path_tokens text[] generated always as (string_to_array(full_file_name, '/')) stored,
	add column version text generated always as (md5(uuid_send(blob_uuid))) stored,
	add column last_accessed_at timestamptz generated always as (updated_at) stored,
	add column metadata jsonb generated always as (storage.object_metadata(mime_type, size, sha256, cache_control)) stored;
create index files_owner_id on storage.files (owner_id) where owner_id is not null;

-- +goose StatementBegin
create function storage.name_bucket() returns trigger
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
	if new.deleting or exists (select from storage.containers c where c.id = new.name) then
		new.id := new.uuid::text;
	else
		new.id := new.name;
	end if;
	return new;
end $$;
comment on function storage.name_bucket is 'gives a container its id as a bucket, and takes it from one in deletion';

-- As the platform, since an end user's question about a move fires it too.
create function storage.assign_bucket() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
	-- Without a container the foreign key refuses the file.
	new.bucket_id := coalesce((select c.id from storage.containers c where c.uuid = new.container_uuid), '');
	return new;
end $$;
-- +goose StatementEnd

create trigger name_bucket before insert on storage.containers
	for each row when (new.id is null) execute function storage.name_bucket();
create trigger name_deleted_bucket before update on storage.containers
	for each row when (new.deleting and not old.deleting) execute function storage.name_bucket();
create trigger assign_bucket before insert on storage.files
	for each row when (new.bucket_id is null) execute function storage.assign_bucket();
create trigger assign_moved_bucket before update on storage.files
	for each row when (old.container_uuid is distinct from new.container_uuid) execute function storage.assign_bucket();

create table storage.buckets (
	id text collate "C",
	name text collate "C",
	owner uuid,
	created_at timestamptz,
	updated_at timestamptz,
	public boolean generated always as (is_public) stored,
	avif_autodetection boolean,
	file_size_limit bigint generated always as (max_file_size) stored,
	allowed_mime_types text[],
	owner_id text,
	type text,
	uuid uuid,
	is_public boolean,
	max_file_size bigint,
	deleting boolean,
	constraint storage_api_only check (false) no inherit
);
comment on table storage.buckets is 'has no rows of its own: it lends its policies to storage.containers';

create table storage.objects (
	id uuid generated always as (uuid) stored,
	bucket_id text collate "C",
	name text collate "C" generated always as (full_file_name) stored,
	owner uuid,
	created_at timestamptz,
	updated_at timestamptz,
	last_accessed_at timestamptz generated always as (updated_at) stored,
	metadata jsonb generated always as (storage.object_metadata(mime_type, size, sha256, cache_control)) stored,
	path_tokens text[] generated always as (string_to_array(full_file_name, '/')) stored,
	version text generated always as (md5(uuid_send(blob_uuid))) stored,
	owner_id text,
	user_metadata jsonb,
	uuid uuid,
	container_uuid uuid,
	full_file_name text collate "C",
	mime_type text collate "C",
	size bigint,
	sha256 bytea,
	blob_uuid uuid,
	cache_control text,
	constraint storage_api_only check (false) no inherit
);
comment on table storage.objects is 'has no rows of its own: it lends its policies to storage.files';

alter table storage.containers inherit storage.buckets;
alter table storage.files inherit storage.objects;
alter table storage.buckets enable row level security;
alter table storage.objects enable row level security;

-- +goose StatementBegin
create function storage.refuse_change() returns trigger
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
	raise insufficient_privilege using constraint = 'storage_api_only',
		message = 'buckets and objects are changed by the Storage API only';
end $$;
comment on function storage.refuse_change is 'ends a change that the policies allow';

create function storage.refuse_changes() returns trigger
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
	raise insufficient_privilege using constraint = 'storage_api_only',
		message = 'buckets and objects are changed by the Storage API only',
		detail = (select coalesce(json_agg(json_build_object('uuid', c.uuid, 'version', c.version, 'name', c.full_file_name,
			'updated_at', c.updated_at)), '[]') from (select * from changed limit 1000) c);
end $$;
comment on function storage.refuse_changes is 'ends a change that the policies allow, and names the objects that it found';
-- +goose StatementEnd

create trigger refuse_update after update on storage.objects referencing old table as changed
	for each statement execute function storage.refuse_changes();
create trigger refuse_delete after delete on storage.objects referencing old table as changed
	for each statement execute function storage.refuse_changes();
create trigger refuse_truncate before truncate on storage.objects for each statement execute function storage.refuse_change();
create trigger refuse_update after update on storage.buckets for each statement execute function storage.refuse_change();
create trigger refuse_delete after delete on storage.buckets for each statement execute function storage.refuse_change();
create trigger refuse_truncate before truncate on storage.buckets for each statement execute function storage.refuse_change();

-- Ends the question before the files of the container are deleted by cascade.
create trigger refuse_delete before delete on storage.containers
	for each row when (current_setting('is_superuser') = 'off') execute function storage.refuse_change();

-- The planner replaces a call by the body.
create function storage.foldername(name text) returns text[] language sql immutable parallel safe
	return (string_to_array(name, '/'))[1:cardinality(string_to_array(name, '/')) - 1];
create function storage.filename(name text) returns text language sql immutable parallel safe
	return (string_to_array(name, '/'))[cardinality(string_to_array(name, '/'))];
create function storage.extension(name text) returns text language sql immutable parallel safe
	return reverse(split_part(reverse((string_to_array(name, '/'))[cardinality(string_to_array(name, '/'))]), '.', 1));

revoke execute on all functions in schema storage from public;
grant usage on schema storage to anon, authenticated, service_role, socle_reader;
grant execute on function storage.foldername(text), storage.filename(text), storage.extension(text),
	storage.object_metadata(text, bigint, bytea, text) to anon, authenticated, service_role, socle_reader;
grant select, insert, update, delete on storage.buckets, storage.objects to anon, authenticated, service_role;
grant select on storage.buckets, storage.objects to socle_reader;

-- The project's owner owns the two parents and may only create, change and drop their policies.
-- +goose StatementBegin
create function socle.refuse_storage_ddl() returns event_trigger
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
		and i.inhrelid in ('storage.containers'::regclass, 'storage.files'::regclass);
	if found then
		raise insufficient_privilege using message = 'storage.buckets and storage.objects belong to the platform: only their policies can be changed';
	end if;
end $$;

create function socle.refuse_storage_drop() returns event_trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
	if (select rolsuper from pg_authid where rolname = session_user) then
		return;
	end if;

	perform from pg_event_trigger_dropped_objects() d
	where d.object_type <> 'policy' and cardinality(d.address_names) > 1 and d.address_names[1] = 'storage';
	if found then
		raise insufficient_privilege using message = 'storage.buckets and storage.objects belong to the platform: only their policies can be changed';
	end if;
end $$;
-- +goose StatementEnd
revoke execute on function socle.refuse_storage_ddl(), socle.refuse_storage_drop() from public;
create event trigger socle_refuse_storage_ddl on ddl_command_end execute function socle.refuse_storage_ddl();
create event trigger socle_refuse_storage_drop on sql_drop execute function socle.refuse_storage_drop();

-- Policies of the two parents may refer to both of them, and anything may call the functions of policies.
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
				select from pg_trigger t where t.oid = d.objid and t.tgrelid = d.refobjid)))
		and not (d.refclassid = 'pg_class'::regclass and d.refobjid in (to_regclass('storage.buckets'), to_regclass('storage.objects'))
			and d.classid = 'pg_policy'::regclass and exists (
				select from pg_policy y where y.oid = d.objid
					and y.polrelid in (to_regclass('storage.buckets'), to_regclass('storage.objects'))))
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
-- +goose StatementEnd
