-- +goose Up
-- How many files there are and how many bytes is kept with every change, exactly: by container, and for the project, whose quota it is
-- held against. Containers of a million files are listed by blocks of files that are counted too. Triggers do it, whoever writes.

lock table storage.containers in access exclusive mode;
lock table storage.files in access exclusive mode;

alter table storage.containers
	add column total_files bigint not null default 0,
	add column total_size bigint not null default 0;
comment on column storage.containers.total_files is 'kept by triggers of storage.files';
update storage.containers c set (total_files, total_size) =
	(select count(*), coalesce(sum(f.size), 0) from storage.files f where f.container_uuid = c.uuid);

create table storage.usage (
	single boolean primary key default true constraint usage_single check (single),
	files bigint not null,
	bytes bigint not null,
	max_files bigint constraint usage_max_files check (max_files >= 0),
	max_bytes bigint constraint usage_max_bytes check (max_bytes >= 0)
);
comment on table storage.usage is 'one row: what the project''s files come to. Its lock puts uploads in order, so that the quota is exact';
comment on column storage.usage.max_files is 'the project''s own quota; null: that of every project';
insert into storage.usage (files, bytes) select count(*), coalesce(sum(size), 0) from storage.files;

create table storage.file_blocks (
	container_uuid uuid not null constraint file_blocks_container references storage.containers on delete cascade,
	first_at timestamptz not null,
	first_uuid uuid not null,
	files bigint not null,
	primary key (container_uuid, first_at, first_uuid)
);
comment on table storage.file_blocks is
	'how many files of a container, by created_at and uuid, there are from here up to the next block; so that a page far behind is found without counting to it';

create table storage.signed_uploads (
	uuid uuid primary key,
	container_uuid uuid not null constraint signed_uploads_container references storage.containers on delete cascade,
	expires_at timestamptz not null
);
comment on table storage.signed_uploads is 'signed URLs for one upload: struck off by the transaction that makes the file';
create index signed_uploads_container on storage.signed_uploads (container_uuid);
create index signed_uploads_expires_at on storage.signed_uploads (expires_at);

create table storage.resumable_uploads (
	uuid uuid primary key,
	container_uuid uuid not null constraint resumable_uploads_container references storage.containers on delete cascade,
	full_file_name text collate "C" not null,
	mime_type text collate "C" not null,
	size bigint not null constraint resumable_uploads_size check (size >= 0),
	file_uuid uuid,
	expires_at timestamptz not null default now() + interval '1 day'
);
comment on table storage.resumable_uploads is 'files that arrive in parts, each a blob of its own';
comment on column storage.resumable_uploads.file_uuid is 'the file that came of it; it may be gone by now';
create index resumable_uploads_container on storage.resumable_uploads (container_uuid);
create index resumable_uploads_expires_at on storage.resumable_uploads (expires_at);

create table storage.upload_parts (
	blob_uuid uuid primary key,
	upload_uuid uuid not null constraint upload_parts_upload references storage.resumable_uploads on delete cascade,
	first bigint not null constraint upload_parts_first check (first >= 0),
	size bigint not null constraint upload_parts_size check (size > 0),
	constraint upload_parts_first_key unique (upload_uuid, first)
);

-- +goose StatementBegin
create function storage.parts_deleted() returns trigger
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
	insert into storage.discarded (blob_uuid) select blob_uuid from old_parts;
	return null;
end $$;
-- +goose StatementEnd
create trigger parts_deleted after delete on storage.upload_parts referencing old table as old_parts
	for each statement execute function storage.parts_deleted();

-- +goose StatementBegin
create function storage.split_block(container uuid, block_at timestamptz, block_uuid uuid) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
	next_at timestamptz;
	next_uuid uuid;
begin
	select b.first_at, b.first_uuid into next_at, next_uuid from storage.file_blocks b
	where b.container_uuid = container and (b.first_at, b.first_uuid) > (block_at, block_uuid)
	order by b.first_at, b.first_uuid limit 1;
	insert into storage.file_blocks as b (container_uuid, first_at, first_uuid, files)
	select container, case part.chunk when 0 then block_at else part.created_at end, case part.chunk when 0 then block_uuid else part.uuid end, part.files
	from (
		select distinct on (f.chunk) f.chunk, f.created_at, f.uuid, count(*) over (partition by f.chunk) as files
		from (
			select f.created_at, f.uuid, (row_number() over (order by f.created_at, f.uuid) - 1) / 1000 as chunk
			from storage.files f
			where f.container_uuid = container and (f.created_at, f.uuid) >= (block_at, block_uuid)
			  and (next_at is null or (f.created_at, f.uuid) < (next_at, next_uuid))
		) f
		order by f.chunk, f.created_at, f.uuid
	) part
	on conflict (container_uuid, first_at, first_uuid) do update set files = excluded.files;
end $$;
comment on function storage.split_block is 'counts a block anew, in blocks of 1000 files';

create function storage.count_files(containers uuid[], files bigint[], bytes bigint[]) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
	-- From here on, changes to a container come one after the other.
	perform from storage.containers c where c.uuid = any(containers) order by c.uuid for no key update;
	update storage.containers c set total_files = c.total_files + d.files, total_size = c.total_size + d.bytes
	from unnest(containers, files, bytes) as d (container, files, bytes) where c.uuid = d.container;
end $$;

create function storage.count_project(more_files bigint, more_bytes bigint) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
	update storage.usage u set files = u.files + more_files, bytes = u.bytes + more_bytes;
end $$;

create function storage.place_files(containers uuid[], ats timestamptz[], ids uuid[], sign integer) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
	block record;
begin
	insert into storage.file_blocks (container_uuid, first_at, first_uuid, files)
	select c.uuid, '-infinity', '00000000-0000-0000-0000-000000000000', 0
	from storage.containers c where c.uuid = any(containers)
	on conflict do nothing;
	for block in
		update storage.file_blocks b set files = b.files + sign * d.files
		from (
			select f.container, b.first_at, b.first_uuid, count(*) as files
			from unnest(containers, ats, ids) as f (container, created_at, uuid)
			cross join lateral (
				select b.first_at, b.first_uuid from storage.file_blocks b
				where b.container_uuid = f.container and (b.first_at, b.first_uuid) <= (f.created_at, f.uuid)
				order by b.first_at desc, b.first_uuid desc limit 1
			) b
			group by f.container, b.first_at, b.first_uuid
		) d
		where b.container_uuid = d.container and b.first_at = d.first_at and b.first_uuid = d.first_uuid
		returning b.container_uuid, b.first_at, b.first_uuid, b.files
	loop
		if block.files > 2000 then
			perform storage.split_block(block.container_uuid, block.first_at, block.first_uuid);
		elsif block.files <= 0 and block.first_at > '-infinity' then
			delete from storage.file_blocks b
			where b.container_uuid = block.container_uuid and b.first_at = block.first_at and b.first_uuid = block.first_uuid;
		end if;
	end loop;
end $$;

create function storage.files_inserted() returns trigger
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
	perform storage.count_files(array_agg(d.container_uuid), array_agg(d.files), array_agg(d.bytes))
	from (select container_uuid, count(*) as files, sum(size)::bigint as bytes from new_files group by container_uuid) d having count(*) > 0;
	perform storage.place_files(array_agg(container_uuid), array_agg(created_at), array_agg(uuid), 1) from new_files having count(*) > 0;
	perform storage.count_project(count(*), sum(size)::bigint) from new_files having count(*) > 0;
	return null;
end $$;

create function storage.files_deleted() returns trigger
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
	perform storage.count_files(array_agg(d.container_uuid), array_agg(d.files), array_agg(d.bytes))
	from (select container_uuid, -count(*) as files, -sum(size)::bigint as bytes from old_files group by container_uuid) d having count(*) > 0;
	perform storage.place_files(array_agg(container_uuid), array_agg(created_at), array_agg(uuid), -1) from old_files having count(*) > 0;
	perform storage.count_project(-count(*), -sum(size)::bigint) from old_files having count(*) > 0;
	return null;
end $$;

create function storage.files_updated() returns trigger
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
	perform storage.count_files(array_agg(d.container_uuid), array_agg(d.files), array_agg(d.bytes))
	from (
		select c.container_uuid, sum(c.files)::bigint as files, sum(c.bytes)::bigint as bytes
		from (select container_uuid, -1 as files, -size as bytes from old_files union all select container_uuid, 1, size from new_files) c
		group by c.container_uuid having sum(c.files) <> 0 or sum(c.bytes) <> 0
	) d having count(*) > 0;
	perform storage.place_files(array_agg(o.container_uuid), array_agg(o.created_at), array_agg(o.uuid), -1)
	from old_files o join new_files n on n.uuid = o.uuid where n.container_uuid <> o.container_uuid having count(*) > 0;
	perform storage.place_files(array_agg(n.container_uuid), array_agg(n.created_at), array_agg(n.uuid), 1)
	from old_files o join new_files n on n.uuid = o.uuid where n.container_uuid <> o.container_uuid having count(*) > 0;
	perform storage.count_project(0, sum(d.bytes)::bigint)
	from (select -size as bytes from old_files union all select size from new_files) d having sum(d.bytes) <> 0;
	return null;
end $$;
-- +goose StatementEnd

create trigger files_inserted after insert on storage.files referencing new table as new_files
	for each statement execute function storage.files_inserted();
create trigger files_deleted after delete on storage.files referencing old table as old_files
	for each statement execute function storage.files_deleted();
create trigger files_updated after update on storage.files referencing old table as old_files new table as new_files
	for each statement execute function storage.files_updated();

insert into storage.file_blocks (container_uuid, first_at, first_uuid, files)
select uuid, '-infinity', '00000000-0000-0000-0000-000000000000', 0 from storage.containers;
select storage.split_block(uuid, '-infinity', '00000000-0000-0000-0000-000000000000') from storage.containers;
