-- +goose Up
-- Questions about a change of storage.buckets name the buckets that the policies have seen, as those about storage.objects do: a
-- statement that finds none has passed no policy.

-- +goose StatementBegin
create or replace function storage.refuse_change() returns trigger
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
	raise insufficient_privilege using constraint = 'storage_api_only',
		message = 'buckets and objects are changed by the Storage API only',
		detail = case when tg_level = 'ROW' then json_build_array(json_build_object('uuid', old.uuid, 'name', old.id,
			'updated_at', old.updated_at))::text else '[]' end;
end $$;

create function storage.refuse_bucket_changes() returns trigger
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
	raise insufficient_privilege using constraint = 'storage_api_only',
		message = 'buckets and objects are changed by the Storage API only',
		detail = (select coalesce(json_agg(json_build_object('uuid', c.uuid, 'name', c.id, 'updated_at', c.updated_at)), '[]')
			from (select * from changed limit 1000) c);
end $$;
comment on function storage.refuse_bucket_changes is 'ends a change that the policies allow, and names the buckets that it found';
-- +goose StatementEnd
revoke execute on function storage.refuse_bucket_changes() from public;

drop trigger refuse_update on storage.buckets;
create trigger refuse_update after update on storage.buckets referencing old table as changed
	for each statement execute function storage.refuse_bucket_changes();
