-- +goose Up
-- A page far behind is found by counted blocks whatever the list is sorted by, not by created_at alone. A resumable upload may say only
-- at its end how long it is.

alter table storage.resumable_uploads add column deferred boolean not null default false;
comment on column storage.resumable_uploads.deferred is 'the length is not known yet; size is the most that there may be';

lock table storage.containers in access exclusive mode;
lock table storage.files in access exclusive mode;

create index files_size on storage.files (container_uuid, size, uuid);
create index files_mime_type on storage.files (container_uuid, mime_type, uuid);
create index files_updated_at on storage.files (container_uuid, updated_at, uuid);

create table storage.sorted_blocks (
	container_uuid uuid not null constraint sorted_blocks_container references storage.containers on delete cascade,
	sort text collate "C" not null,
	first_text text collate "C" not null,
	first_number bigint not null,
	first_time timestamptz not null,
	first_uuid uuid not null,
	files bigint not null,
	primary key (container_uuid, sort, first_text, first_number, first_time, first_uuid)
);
comment on table storage.sorted_blocks is
	'how many files of a container, in the order of a column and of uuid, there are from here up to the next block; so that a page far behind is found without counting to it';
comment on column storage.sorted_blocks.sort is 'a column of storage.files; its value stands in the one of first_text, first_number and first_time that has its type';

create function storage.sort_keys(full_file_name text, mime_type text, size bigint, created_at timestamptz, updated_at timestamptz)
returns table (sort text, in_text text, in_number bigint, in_time timestamptz)
language sql immutable as $$
	values ('full_file_name', full_file_name, 0::bigint, '-infinity'::timestamptz), ('mime_type', mime_type, 0, '-infinity'),
	       ('size', '', size, '-infinity'), ('created_at', '', 0, created_at), ('updated_at', '', 0, updated_at)
$$;
comment on function storage.sort_keys is 'where a file stands in each order';

-- +goose StatementBegin
create function storage.split_sorted(block storage.sorted_blocks) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
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
end $$;
comment on function storage.split_sorted is 'counts a block anew, in blocks of 1000 files';

create function storage.place_keys(containers uuid[], sorts text[], texts text[], numbers bigint[], times timestamptz[], ids uuid[], sign integer) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
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

create function storage.containers_inserted() returns trigger
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
	insert into storage.sorted_blocks (container_uuid, sort, first_text, first_number, first_time, first_uuid, files)
	select c.uuid, k.sort, '', -1, '-infinity', '00000000-0000-0000-0000-000000000000', 0
	from new_containers c cross join storage.sort_keys('', '', 0, now(), now()) k;
	return null;
end $$;
comment on function storage.containers_inserted is 'in each order, a container has a first block, before which nothing comes';

create or replace function storage.count_files(containers uuid[], files bigint[], bytes bigint[]) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
	-- From here on, changes to a container come one after the other.
	perform from storage.containers c where c.uuid = any(containers) order by c.uuid for no key update;
	update storage.containers c set total_files = c.total_files + d.files, total_size = c.total_size + d.bytes
	from unnest(containers, files, bytes) as d (container, files, bytes) where c.uuid = d.container and (d.files <> 0 or d.bytes <> 0);
end $$;

create or replace function storage.files_inserted() returns trigger
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
	perform storage.count_files(array_agg(d.container_uuid), array_agg(d.files), array_agg(d.bytes))
	from (select container_uuid, count(*) as files, sum(size)::bigint as bytes from new_files group by container_uuid) d having count(*) > 0;
	perform storage.place_keys(array_agg(f.container_uuid), array_agg(k.sort), array_agg(k.in_text), array_agg(k.in_number), array_agg(k.in_time), array_agg(f.uuid), 1)
	from new_files f cross join lateral storage.sort_keys(f.full_file_name, f.mime_type, f.size, f.created_at, f.updated_at) k having count(*) > 0;
	perform storage.count_project(count(*), sum(size)::bigint) from new_files having count(*) > 0;
	return null;
end $$;

create or replace function storage.files_deleted() returns trigger
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
	perform storage.count_files(array_agg(d.container_uuid), array_agg(d.files), array_agg(d.bytes))
	from (select container_uuid, -count(*) as files, -sum(size)::bigint as bytes from old_files group by container_uuid) d having count(*) > 0;
	perform storage.place_keys(array_agg(f.container_uuid), array_agg(k.sort), array_agg(k.in_text), array_agg(k.in_number), array_agg(k.in_time), array_agg(f.uuid), -1)
	from old_files f cross join lateral storage.sort_keys(f.full_file_name, f.mime_type, f.size, f.created_at, f.updated_at) k having count(*) > 0;
	perform storage.count_project(-count(*), -sum(size)::bigint) from old_files having count(*) > 0;
	return null;
end $$;

create or replace function storage.files_updated() returns trigger
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
	perform storage.count_files(array_agg(d.container_uuid), array_agg(d.files), array_agg(d.bytes))
	from (
		select c.container_uuid, sum(c.files)::bigint as files, sum(c.bytes)::bigint as bytes
		from (select container_uuid, -1 as files, -size as bytes from old_files union all select container_uuid, 1, size from new_files) c
		group by c.container_uuid
	) d having count(*) > 0;
	perform storage.place_keys(array_agg(g.container_uuid), array_agg(g.sort), array_agg(g.in_text), array_agg(g.in_number), array_agg(g.in_time), array_agg(g.uuid), g.sign)
	from (
		select -1 as sign, gone.* from (
			select o.container_uuid, o.uuid, k.* from old_files o cross join lateral storage.sort_keys(o.full_file_name, o.mime_type, o.size, o.created_at, o.updated_at) k
			except select n.container_uuid, n.uuid, k.* from new_files n cross join lateral storage.sort_keys(n.full_file_name, n.mime_type, n.size, n.created_at, n.updated_at) k
		) gone
		union all
		select 1, come.* from (
			select n.container_uuid, n.uuid, k.* from new_files n cross join lateral storage.sort_keys(n.full_file_name, n.mime_type, n.size, n.created_at, n.updated_at) k
			except select o.container_uuid, o.uuid, k.* from old_files o cross join lateral storage.sort_keys(o.full_file_name, o.mime_type, o.size, o.created_at, o.updated_at) k
		) come
	) g
	group by g.sign order by g.sign;
	perform storage.count_project(0, sum(d.bytes)::bigint)
	from (select -size as bytes from old_files union all select size from new_files) d having sum(d.bytes) <> 0;
	return null;
end $$;
-- +goose StatementEnd

drop function storage.place_files(uuid[], timestamptz[], uuid[], integer);
drop function storage.split_block(uuid, timestamptz, uuid);
drop table storage.file_blocks;
create view storage.file_blocks as
	select container_uuid, first_time as first_at, first_uuid, files from storage.sorted_blocks where sort = 'created_at';
comment on view storage.file_blocks is 'for the release before the one that counts in each order';

create trigger containers_inserted after insert on storage.containers referencing new table as new_containers
	for each statement execute function storage.containers_inserted();

insert into storage.sorted_blocks (container_uuid, sort, first_text, first_number, first_time, first_uuid, files)
select c.uuid, k.sort, '', -1, '-infinity', '00000000-0000-0000-0000-000000000000', 0
from storage.containers c cross join storage.sort_keys('', '', 0, now(), now()) k;
select storage.split_sorted(b) from storage.sorted_blocks b;
