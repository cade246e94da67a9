-- +goose Up
-- Every change by whom, when, from where, to what, written in the transaction that makes it. The hash of an entry is keyed with the
-- secret of the instance and covers the hash before it: nobody who only has the database can change, add or remove one unnoticed.

create table socle.audit (
	seq bigint primary key,
	entry text not null,
	hash bytea not null
);
comment on column socle.audit.entry is 'a JSON object, as text: the hash is of its bytes';
create unique index audit_key on socle.audit ((entry::jsonb ->> 'key')) where entry::jsonb ->> 'key' is not null;
comment on index socle.audit_key is 'what was asked for under an Idempotency-Key happens once';
create index audit_at on socle.audit ((entry::jsonb ->> 'at'));

create table socle.audit_head (
	log text primary key constraint audit_head_log check (log = 'project'),
	seq bigint not null,
	hash bytea not null
);
comment on table socle.audit_head is 'the last entry; its lock puts those that write at one time in order';
insert into socle.audit_head (log, seq, hash) values ('project', 0, decode(repeat('00', 32), 'hex'));

-- +goose StatementBegin
create function socle.lock_audit(out log text, out seq bigint, out hash bytea)
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
	if session_user <> current_database() || '_owner' and not (select rolsuper from pg_roles where rolname = session_user) then
		raise insufficient_privilege using message = 'the audit log is written by the platform';
	end if;
	select h.log, h.seq, h.hash into strict log, seq, hash from socle.audit_head h for update;
end $$;

create function socle.append_audit(new_seq bigint, new_entry text, new_hash bytea) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
	if session_user <> current_database() || '_owner' and not (select rolsuper from pg_roles where rolname = session_user) then
		raise insufficient_privilege using message = 'the audit log is written by the platform';
	end if;
	insert into socle.audit (seq, entry, hash) values (new_seq, new_entry, new_hash);
	update socle.audit_head set seq = new_seq, hash = new_hash where seq = new_seq - 1;
	if not found then
		raise exception 'entry % does not follow the last one', new_seq;
	end if;
end $$;
-- +goose StatementEnd

-- The owner's transactions change tables and functions, and note it themselves. Whoever calls these with something of their own
-- writes an entry that the platform's key does not confirm, and its check finds.
grant usage on schema socle to public;
grant execute on function socle.lock_audit(), socle.append_audit(bigint, text, bytea) to public;
