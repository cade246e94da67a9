-- +goose Up
-- Statements on the audit log read by index only. Plans that were made while the log was empty, and those of 200 lookups at
-- once, read the whole log.

-- +goose StatementBegin
-- take_audit_entries deletes the first pending entries and returns them in any order. chained says that the chain has an
-- entry of the same text.
create function socle.take_audit_entries(most integer)
returns table (id bigint, entry text, mac bytea, chained boolean)
language plpgsql set search_path = pg_catalog, pg_temp set enable_seqscan = off as $$
begin
	return query
		delete from socle.audit_pending p
		where p.id in (select q.id from socle.audit_pending q order by q.id limit most)
		returning p.id, p.entry, p.mac, exists (
			select from socle.audit a
			where a.entry::jsonb ->> 'at' = p.entry::jsonb ->> 'at' and a.entry = p.entry);
end $$;
-- +goose StatementEnd
revoke execute on function socle.take_audit_entries(integer) from public;

alter function socle.write_audit(text, bytea) set enable_seqscan = off;
