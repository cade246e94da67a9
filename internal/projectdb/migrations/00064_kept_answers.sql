-- +goose Up
-- Answers to writes of the rows API with an Idempotency-Key, kept for a day by the transaction that made the write.

create table socle.kept_answers (
	key bytea primary key, -- hash of the caller and the Idempotency-Key
	fingerprint bytea not null, -- hash of the request
	kept_at timestamptz not null default now(),
	status smallint not null,
	headers jsonb not null,
	body bytea -- null if it was too long to keep
);
create index kept_answers_kept_at_idx on socle.kept_answers (kept_at);
comment on table socle.kept_answers is 'answers of the rows API to requests with an Idempotency-Key';
-- Nobody has privileges: functions read and write it.
alter table socle.kept_answers disable row level security;

-- +goose StatementBegin
create function socle.find_answer(key bytea) returns table (fingerprint bytea, status smallint, headers jsonb, body bytea)
language sql stable security definer set search_path = pg_catalog, pg_temp
begin atomic
	select a.fingerprint, a.status, a.headers, a.body from socle.kept_answers a
	where a.key = find_answer.key and a.kept_at > now() - interval '1 day';
end;
-- +goose StatementEnd

-- +goose StatementBegin
-- claim_answer makes the transaction the only one with a key. It fails at once if another one has it, or has kept an answer.
create function socle.claim_answer(key bytea) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
	if not pg_try_advisory_xact_lock(hashtextextended(encode(claim_answer.key, 'hex'), 0)) then
		raise lock_not_available using message = 'a request with the key is in progress';
	end if;
	if exists (select from socle.find_answer(claim_answer.key)) then
		raise unique_violation using message = 'a request with the key has an answer';
	end if;
end $$;
-- +goose StatementEnd

-- +goose StatementBegin
-- keep_answer also removes a few expired answers.
create function socle.keep_answer(key bytea, fingerprint bytea, status smallint, headers jsonb, body bytea) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
	delete from socle.kept_answers a where a.key in (
		select e.key from socle.kept_answers e where e.kept_at <= now() - interval '1 day'
		order by e.kept_at limit 20 for update skip locked);
	insert into socle.kept_answers as a (key, fingerprint, status, headers, body)
	values (keep_answer.key, keep_answer.fingerprint, keep_answer.status, keep_answer.headers, keep_answer.body)
	on conflict on constraint kept_answers_pkey do update
	set fingerprint = excluded.fingerprint, kept_at = now(), status = excluded.status, headers = excluded.headers, body = excluded.body
	where a.kept_at <= now() - interval '1 day';
	if not found then
		raise unique_violation using message = 'a request with the key has an answer';
	end if;
end $$;
-- +goose StatementEnd

revoke execute on function socle.find_answer(bytea), socle.claim_answer(bytea),
	socle.keep_answer(bytea, bytea, smallint, jsonb, bytea) from public;
