-- +goose Up
-- A change used to lock the last entry until its commit was on disk, so that the changes of a database waited for one another.
-- Now it inserts an entry with a MAC of its own, and a server chains the entries behind, in the order in which it reads them.
-- The previous release chains its entries itself, by lock_audit() and append_audit().

create table socle.audit_pending (
	id bigint generated always as identity primary key,
	entry text not null constraint audit_pending_length check (octet_length(entry) <= 65536),
	mac bytea not null constraint audit_pending_mac check (octet_length(mac) <= 64),
	key text
);
comment on table socle.audit_pending is 'audit entries that are not in the chain yet';
comment on column socle.audit_pending.key is 'hash of the Idempotency-Key of the request';
create unique index audit_pending_key on socle.audit_pending (key) where key is not null;

-- +goose StatementBegin
create function socle.write_audit(new_entry text, new_mac bytea) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
	new_key constant text := new_entry::jsonb ->> 'key';
begin
	if session_user <> current_database() || '_owner' and not (select rolsuper from pg_roles where rolname = session_user) then
		raise insufficient_privilege using message = 'the audit log is written by the platform';
	end if;
	insert into socle.audit_pending (entry, mac, key) values (new_entry, new_mac, new_key);

	-- After the insert: it waits for the transaction that moves an entry with the same key into the chain.
	if new_key is not null and exists (select from socle.audit where entry::jsonb ->> 'key' = new_key) then
		raise unique_violation using constraint = 'audit_pending_key', message = 'the chain has an entry with this key';
	end if;
end $$;

-- The lock waits for the transactions that have written an entry, and others can write none until the caller's ends.
create function socle.lock_audit_entries(out log text, out entries bigint)
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
	if session_user <> current_database() || '_owner' and not (select rolsuper from pg_roles where rolname = session_user) then
		raise insufficient_privilege using message = 'the audit log is written by the platform';
	end if;
	lock table socle.audit_pending in share row exclusive mode;
	select h.log, h.seq + (select count(*) from socle.audit_pending) into strict log, entries from socle.audit_head h;
end $$;
-- +goose StatementEnd

revoke all on function socle.write_audit(text, bytea), socle.lock_audit_entries() from public;
