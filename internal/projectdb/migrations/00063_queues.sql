-- +goose Up
-- Queues in the form that pgmq's users know, and schema pgmq_public for the rows API. The project's owner owns the tables of a
-- queue, and all functions run with the caller's rights. A project that has a schema pgmq or pgmq_public of its own keeps it. See
-- docs/decisions/queues.md.

-- +goose StatementBegin
do $migration$
begin
	if to_regnamespace('pgmq') is not null then
		return;
	end if;

	create schema pgmq;
	create type pgmq.message_record as (msg_id bigint, read_ct integer, enqueued_at timestamptz, vt timestamptz, message jsonb,
		headers jsonb);
	create type pgmq.queue_record as (queue_name text, is_partitioned boolean, is_unlogged boolean, created_at timestamptz);
	create type pgmq.metrics_result as (queue_name text, queue_length bigint, newest_msg_age_sec integer,
		oldest_msg_age_sec integer, total_messages bigint, scrape_time timestamptz, queue_visible_length bigint);

	-- Queues are the tables q_…: this has what the catalog lacks.
	create table pgmq.meta (
		queue_name text primary key,
		is_partitioned boolean not null default false,
		is_unlogged boolean not null default false,
		created_at timestamptz not null default now()
	);
	comment on table pgmq.meta is 'when queues were created';
	alter table pgmq.meta disable row level security;

	create function pgmq.validate_queue_name(queue_name text) returns void
	language plpgsql immutable set search_path = pg_catalog, pg_temp as $$
	begin
		if queue_name is null or queue_name = '' then
			raise invalid_parameter_value using message = 'queue name is empty';
		elsif octet_length(queue_name) > 47 then
			raise invalid_parameter_value using message = 'queue name is too long, maximum length is 47 bytes';
		elsif queue_name ~ '[$;'']|--' then
			raise invalid_parameter_value using message = 'queue name contains invalid characters: $, ;, --, or ''';
		end if;
	end $$;

	create function pgmq.format_table_name(queue_name text, prefix text) returns text
	language plpgsql immutable set search_path = pg_catalog, pg_temp as $$
	begin
		perform pgmq.validate_queue_name(queue_name);
		return lower(prefix || '_' || queue_name);
	end $$;

	create function pgmq.check_range(name text, value integer, lowest integer, highest integer) returns void
	language plpgsql immutable set search_path = pg_catalog, pg_temp as $$
	begin
		if value is null or value < lowest or value > highest then
			raise invalid_parameter_value using message = format('%s must be %s to %s', name, lowest, highest);
		end if;
	end $$;

	create function pgmq.create_tables(queue_name text, unlogged boolean) returns void
	language plpgsql set search_path = pg_catalog, pg_temp as $$
	declare
		queue constant text := pgmq.format_table_name(queue_name, 'q');
		archive constant text := pgmq.format_table_name(queue_name, 'a');
	begin
		-- Each of two calls at once counts the queue of the other.
		perform pg_advisory_xact_lock('pgmq'::regnamespace::oid::bigint);
		if to_regclass(format('pgmq.%I', queue)) is null and (select count(*) from pgmq.list_queues()) >= 500 then
			raise program_limit_exceeded using message = 'a project has at most 500 queues';
		end if;

		execute format('create %s table if not exists pgmq.%I (
			msg_id bigint primary key generated always as identity, read_ct integer not null default 0,
			enqueued_at timestamptz not null default now(), vt timestamptz not null, message jsonb, headers jsonb)',
			case when unlogged then 'unlogged' else '' end, queue);
		execute format('create table if not exists pgmq.%I (
			msg_id bigint primary key, read_ct integer not null default 0, enqueued_at timestamptz not null default now(),
			archived_at timestamptz not null default now(), vt timestamptz not null, message jsonb, headers jsonb)', archive);
		execute format('create index if not exists %I on pgmq.%I (vt)', queue || '_vt_idx', queue);
		execute format('create index if not exists %I on pgmq.%I (archived_at)', 'archived_at_idx_' || lower(queue_name), archive);

		insert into pgmq.meta (queue_name, is_unlogged) values (lower(create_tables.queue_name), unlogged) on conflict do nothing;
	end $$;

	create function pgmq.create(queue_name text) returns void language sql set search_path = pg_catalog, pg_temp
		return pgmq.create_tables(queue_name, false);
	create function pgmq.create_non_partitioned(queue_name text) returns void language sql set search_path = pg_catalog, pg_temp
		return pgmq.create_tables(queue_name, false);
	create function pgmq.create_unlogged(queue_name text) returns void language sql set search_path = pg_catalog, pg_temp
		return pgmq.create_tables(queue_name, true);
	create function pgmq.create_partitioned(queue_name text, partition_interval text default '10000',
		retention_interval text default '100000') returns void
	language plpgsql set search_path = pg_catalog, pg_temp as $$
	begin
		raise feature_not_supported using message = 'pgmq.create_partitioned: queues have no partitions',
			hint = 'Use pgmq.create.';
	end $$;

	create function pgmq.drop_queue(queue_name text) returns boolean
	language plpgsql set search_path = pg_catalog, pg_temp as $$
	declare
		queue constant text := pgmq.format_table_name(queue_name, 'q');
	begin
		if to_regclass(format('pgmq.%I', queue)) is null then
			raise notice 'queue % does not exist', queue_name;
			return false;
		end if;

		execute format('drop table pgmq.%I', queue);
		execute format('drop table if exists pgmq.%I', pgmq.format_table_name(queue_name, 'a'));
		delete from pgmq.meta m where m.queue_name = lower(drop_queue.queue_name);
		return true;
	end $$;

	create function pgmq.drop_queue(queue_name text, partitioned boolean) returns boolean
	language sql set search_path = pg_catalog, pg_temp return pgmq.drop_queue(queue_name);

	-- An archive is a table of its own already.
	create function pgmq.detach_archive(queue_name text) returns void language sql set search_path = pg_catalog, pg_temp
		return pgmq.validate_queue_name(queue_name);

	create function pgmq.list_queues() returns setof pgmq.queue_record
	language sql stable set search_path = pg_catalog, pg_temp
	begin atomic
		select substr(c.relname, 3), false, c.relpersistence = 'u', m.created_at
		from pg_class c left join pgmq.meta m on m.queue_name = substr(c.relname, 3)
		where c.relnamespace = 'pgmq'::regnamespace and c.relkind = 'r' and c.relname like 'q\_%'
		order by 1;
	end;

	create function pgmq.send_batch(queue_name text, msgs jsonb[], headers jsonb[], delay timestamptz) returns setof bigint
	language plpgsql set search_path = pg_catalog, pg_temp as $$
	begin
		if coalesce(cardinality(msgs), 0) = 0 then
			raise invalid_parameter_value using message = 'msgs must not be null or empty';
		elsif headers is not null and cardinality(headers) <> cardinality(msgs) then
			raise invalid_parameter_value using message = 'headers must be null or as many as msgs';
		elsif delay is null then
			raise invalid_parameter_value using message = 'delay must not be null';
		elsif exists (select from unnest(msgs, headers) as t (m, h)
			where octet_length(m::text) > 1048576 or octet_length(h::text) > 65536) then
			raise program_limit_exceeded using message = 'a message has at most 1048576 bytes, its headers 65536';
		end if;

		return query execute format('insert into pgmq.%I (vt, message, headers)
			select $1, m, h from unnest($2, $3) with ordinality as t (m, h, n) order by n returning msg_id',
			pgmq.format_table_name(queue_name, 'q')) using delay, msgs, headers;
	end $$;
	create function pgmq.send_batch(queue_name text, msgs jsonb[]) returns setof bigint language sql volatile
		set search_path = pg_catalog, pg_temp begin atomic
		select pgmq.send_batch(queue_name, msgs, null, clock_timestamp()); end;
	create function pgmq.send_batch(queue_name text, msgs jsonb[], headers jsonb[]) returns setof bigint language sql volatile
		set search_path = pg_catalog, pg_temp begin atomic
		select pgmq.send_batch(queue_name, msgs, headers, clock_timestamp()); end;
	create function pgmq.send_batch(queue_name text, msgs jsonb[], delay integer) returns setof bigint language sql volatile
		set search_path = pg_catalog, pg_temp begin atomic
		select pgmq.send_batch(queue_name, msgs, null, clock_timestamp() + make_interval(secs => delay)); end;
	create function pgmq.send_batch(queue_name text, msgs jsonb[], delay timestamptz) returns setof bigint language sql volatile
		set search_path = pg_catalog, pg_temp begin atomic
		select pgmq.send_batch(queue_name, msgs, null, delay); end;
	create function pgmq.send_batch(queue_name text, msgs jsonb[], headers jsonb[], delay integer) returns setof bigint language sql
		volatile set search_path = pg_catalog, pg_temp begin atomic
		select pgmq.send_batch(queue_name, msgs, headers, clock_timestamp() + make_interval(secs => delay)); end;

	create function pgmq.send(queue_name text, msg jsonb, headers jsonb, delay timestamptz) returns setof bigint language sql
		volatile set search_path = pg_catalog, pg_temp begin atomic
		select pgmq.send_batch(queue_name, array[msg], array[headers], delay); end;
	create function pgmq.send(queue_name text, msg jsonb) returns setof bigint language sql volatile
		set search_path = pg_catalog, pg_temp begin atomic
		select pgmq.send(queue_name, msg, null, clock_timestamp()); end;
	create function pgmq.send(queue_name text, msg jsonb, headers jsonb) returns setof bigint language sql volatile
		set search_path = pg_catalog, pg_temp begin atomic
		select pgmq.send(queue_name, msg, headers, clock_timestamp()); end;
	create function pgmq.send(queue_name text, msg jsonb, delay integer) returns setof bigint language sql volatile
		set search_path = pg_catalog, pg_temp begin atomic
		select pgmq.send(queue_name, msg, null, clock_timestamp() + make_interval(secs => delay)); end;
	create function pgmq.send(queue_name text, msg jsonb, delay timestamptz) returns setof bigint language sql volatile
		set search_path = pg_catalog, pg_temp begin atomic
		select pgmq.send(queue_name, msg, null, delay); end;
	create function pgmq.send(queue_name text, msg jsonb, headers jsonb, delay integer) returns setof bigint language sql volatile
		set search_path = pg_catalog, pg_temp begin atomic
		select pgmq.send(queue_name, msg, headers, clock_timestamp() + make_interval(secs => delay)); end;

	-- A reader skips the rows that another one locks, and PostgreSQL checks vt again in a row that another one has changed.
	create function pgmq.read(queue_name text, vt integer, qty integer, conditional jsonb default '{}')
		returns setof pgmq.message_record
	language plpgsql set search_path = pg_catalog, pg_temp as $$
	begin
		perform pgmq.check_range('qty', qty, 1, 1000);
		return query execute format('with next as materialized (
				select msg_id from pgmq.%1$I where vt <= clock_timestamp() and ($3 = ''{}'' or message @> $3)
				order by msg_id limit $1 for update skip locked
			), changed as (
				update pgmq.%1$I q set vt = clock_timestamp() + make_interval(secs => $2), read_ct = q.read_ct + 1
				from next where q.msg_id = next.msg_id
				returning q.msg_id, q.read_ct, q.enqueued_at, q.vt, q.message, q.headers
			) select * from changed order by msg_id', pgmq.format_table_name(queue_name, 'q'))
			using qty, vt, coalesce(conditional, '{}');
	end $$;

	create function pgmq.read_with_poll(queue_name text, vt integer, qty integer, max_poll_seconds integer default 5,
		poll_interval_ms integer default 100, conditional jsonb default '{}') returns setof pgmq.message_record
	language plpgsql set search_path = pg_catalog, pg_temp as $$
	declare
		until timestamptz;
	begin
		perform pgmq.check_range('max_poll_seconds', max_poll_seconds, 0, 30);
		perform pgmq.check_range('poll_interval_ms', poll_interval_ms, 10, 30000);
		until := clock_timestamp() + make_interval(secs => max_poll_seconds);

		-- A poll holds a connection, of which a project has few.
		for i in 1..5 loop
			if i = 5 then
				raise too_many_connections using message = 'a project polls its queues at most 4 times at once';
			end if;
			exit when pg_try_advisory_xact_lock('pgmq'::regnamespace::oid::integer, i);
		end loop;

		loop
			return query select * from pgmq.read(queue_name, vt, qty, conditional);
			exit when found or clock_timestamp() >= until;
			perform pg_sleep(least(poll_interval_ms / 1000.0, extract(epoch from until - clock_timestamp())));
		end loop;
	end $$;

	create function pgmq.pop(queue_name text, qty integer default 1) returns setof pgmq.message_record
	language plpgsql set search_path = pg_catalog, pg_temp as $$
	begin
		perform pgmq.check_range('qty', qty, 1, 1000);
		return query execute format('with next as materialized (
				select msg_id from pgmq.%1$I where vt <= clock_timestamp() order by msg_id limit $1 for update skip locked
			), removed as (
				delete from pgmq.%1$I q using next where q.msg_id = next.msg_id
				returning q.msg_id, q.read_ct, q.enqueued_at, q.vt, q.message, q.headers
			) select * from removed order by msg_id', pgmq.format_table_name(queue_name, 'q')) using qty;
	end $$;

	create function pgmq.set_vt(queue_name text, msg_ids bigint[], vt integer) returns setof pgmq.message_record
	language plpgsql set search_path = pg_catalog, pg_temp as $$
	begin
		return query execute format('update pgmq.%I q set vt = clock_timestamp() + make_interval(secs => $2)
			where q.msg_id = any($1) returning q.msg_id, q.read_ct, q.enqueued_at, q.vt, q.message, q.headers',
			pgmq.format_table_name(queue_name, 'q')) using msg_ids, vt;
	end $$;
	create function pgmq.set_vt(queue_name text, msg_id bigint, vt integer) returns setof pgmq.message_record language sql volatile
		set search_path = pg_catalog, pg_temp begin atomic
		select * from pgmq.set_vt(queue_name, array[msg_id], vt); end;

	create function pgmq.archive(queue_name text, msg_ids bigint[]) returns setof bigint
	language plpgsql set search_path = pg_catalog, pg_temp as $$
	begin
		return query execute format('with removed as (
				delete from pgmq.%I where msg_id = any($1) returning msg_id, read_ct, enqueued_at, vt, message, headers
			) insert into pgmq.%I (msg_id, read_ct, enqueued_at, vt, message, headers) select * from removed returning msg_id',
			pgmq.format_table_name(queue_name, 'q'), pgmq.format_table_name(queue_name, 'a')) using msg_ids;
	end $$;
	create function pgmq.archive(queue_name text, msg_id bigint) returns boolean language sql volatile
		set search_path = pg_catalog, pg_temp begin atomic
		select count(*) > 0 from pgmq.archive(queue_name, array[msg_id]); end;

	create function pgmq.archive_dead(queue_name text, max_reads integer) returns setof bigint
	language plpgsql set search_path = pg_catalog, pg_temp as $$
	begin
		perform pgmq.check_range('max_reads', max_reads, 1, 2147483647);
		return query execute format('with removed as (
				delete from pgmq.%1$I where msg_id in (
					select msg_id from pgmq.%1$I where read_ct >= $1 and vt <= clock_timestamp() for update skip locked)
				returning msg_id, read_ct, enqueued_at, vt, message, headers
			) insert into pgmq.%2$I (msg_id, read_ct, enqueued_at, vt, message, headers) select * from removed returning msg_id',
			pgmq.format_table_name(queue_name, 'q'), pgmq.format_table_name(queue_name, 'a')) using max_reads;
	end $$;
	comment on function pgmq.archive_dead(text, integer) is
		'archives the messages that were read at least max_reads times and are visible again';

	create function pgmq.delete(queue_name text, msg_ids bigint[]) returns setof bigint
	language plpgsql set search_path = pg_catalog, pg_temp as $$
	begin
		return query execute format('delete from pgmq.%I where msg_id = any($1) returning msg_id',
			pgmq.format_table_name(queue_name, 'q')) using msg_ids;
	end $$;
	create function pgmq.delete(queue_name text, msg_id bigint) returns boolean language sql volatile
		set search_path = pg_catalog, pg_temp begin atomic
		select count(*) > 0 from pgmq.delete(queue_name, array[msg_id]); end;

	create function pgmq.purge_queue(queue_name text) returns bigint
	language plpgsql set search_path = pg_catalog, pg_temp as $$
	declare
		queue constant text := pgmq.format_table_name(queue_name, 'q');
		n bigint;
	begin
		execute format('lock table pgmq.%I in access exclusive mode', queue);
		execute format('select count(*) from pgmq.%I', queue) into n;
		execute format('truncate pgmq.%I', queue);
		return n;
	end $$;

	create function pgmq.metrics(queue_name text) returns pgmq.metrics_result
	language plpgsql set search_path = pg_catalog, pg_temp as $$
	declare
		result pgmq.metrics_result;
	begin
		execute format('select $1, count(*), extract(epoch from clock_timestamp() - max(enqueued_at))::integer,
				extract(epoch from clock_timestamp() - min(enqueued_at))::integer,
				coalesce(pg_sequence_last_value(pg_get_serial_sequence(%2$L, ''msg_id'')::regclass), 0), clock_timestamp(),
				count(*) filter (where vt <= clock_timestamp())
			from pgmq.%1$I', pgmq.format_table_name(queue_name, 'q'), format('pgmq.%I', pgmq.format_table_name(queue_name, 'q')))
		into result using queue_name;
		return result;
	end $$;

	create function pgmq.metrics_all() returns setof pgmq.metrics_result language sql volatile
		set search_path = pg_catalog, pg_temp begin atomic
		select m.* from pgmq.list_queues() q, pgmq.metrics(q.queue_name) m; end;

	revoke execute on all functions in schema pgmq from public;

	-- Nobody but the owner has a right to a queue's tables from the start, so these reach no message.
	grant usage on schema pgmq to anon, authenticated, service_role;
	grant execute on function pgmq.validate_queue_name(text), pgmq.format_table_name(text, text),
		pgmq.check_range(text, integer, integer, integer),
		pgmq.send(text, jsonb), pgmq.send(text, jsonb, jsonb), pgmq.send(text, jsonb, integer), pgmq.send(text, jsonb, timestamptz),
		pgmq.send(text, jsonb, jsonb, integer), pgmq.send(text, jsonb, jsonb, timestamptz),
		pgmq.send_batch(text, jsonb[]), pgmq.send_batch(text, jsonb[], jsonb[]), pgmq.send_batch(text, jsonb[], integer),
		pgmq.send_batch(text, jsonb[], timestamptz), pgmq.send_batch(text, jsonb[], jsonb[], integer),
		pgmq.send_batch(text, jsonb[], jsonb[], timestamptz),
		pgmq.read(text, integer, integer, jsonb), pgmq.pop(text, integer), pgmq.set_vt(text, bigint, integer),
		pgmq.set_vt(text, bigint[], integer), pgmq.archive(text, bigint), pgmq.archive(text, bigint[]),
		pgmq.delete(text, bigint), pgmq.delete(text, bigint[])
		to anon, authenticated, service_role;
	grant execute on function pgmq.read_with_poll(text, integer, integer, integer, integer, jsonb), pgmq.archive_dead(text, integer),
		pgmq.purge_queue(text), pgmq.list_queues(), pgmq.metrics(text), pgmq.metrics_all() to service_role;
	grant select on pgmq.meta to service_role;

	if to_regnamespace('pgmq_public') is not null then
		return;
	end if;

	create schema pgmq_public;
	create function pgmq_public.send(queue_name text, message jsonb, sleep_seconds integer default 0) returns setof bigint
		language sql volatile set search_path = pg_catalog, pg_temp begin atomic
		select pgmq.send(queue_name, message, sleep_seconds); end;
	create function pgmq_public.send_batch(queue_name text, messages jsonb[], sleep_seconds integer default 0) returns setof bigint
		language sql volatile set search_path = pg_catalog, pg_temp begin atomic
		select pgmq.send_batch(queue_name, messages, sleep_seconds); end;
	create function pgmq_public.read(queue_name text, sleep_seconds integer, n integer) returns setof pgmq.message_record
		language sql volatile set search_path = pg_catalog, pg_temp begin atomic
		select * from pgmq.read(queue_name, sleep_seconds, n); end;
	create function pgmq_public.pop(queue_name text) returns setof pgmq.message_record
		language sql volatile set search_path = pg_catalog, pg_temp begin atomic select * from pgmq.pop(queue_name); end;
	create function pgmq_public.archive(queue_name text, message_id bigint) returns boolean
		language sql volatile set search_path = pg_catalog, pg_temp return pgmq.archive(queue_name, message_id);
	create function pgmq_public.delete(queue_name text, message_id bigint) returns boolean
		language sql volatile set search_path = pg_catalog, pg_temp return pgmq.delete(queue_name, message_id);
	comment on function pgmq_public.send(text, jsonb, integer) is 'adds a message to a queue';
	comment on function pgmq_public.send_batch(text, jsonb[], integer) is 'adds messages to a queue';
	comment on function pgmq_public.read(text, integer, integer) is 'reads n messages and hides them for sleep_seconds';
	comment on function pgmq_public.pop(text) is 'reads a message and deletes it';
	comment on function pgmq_public.archive(text, bigint) is 'moves a message to the archive of its queue';
	comment on function pgmq_public.delete(text, bigint) is 'deletes a message';
	revoke execute on all functions in schema pgmq_public from public;
	grant usage on schema pgmq_public to anon, authenticated, service_role;
	grant execute on all functions in schema pgmq_public to anon, authenticated, service_role;
end $migration$;

-- In the platform's schema pgmq, the owner has tables of queues and what belongs to them.
create function socle.refuse_queue_ddl() returns event_trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
	if (select rolsuper from pg_authid where rolname = session_user) then
		return;
	end if;

	perform from pg_event_trigger_ddl_commands() d
	where d.schema_name = 'pgmq'
		and (select n.nspowner from pg_namespace n where n.nspname = 'pgmq') = (
			select n.nspowner from pg_namespace n where n.nspname = 'socle')
		and not case d.classid
			when 'pg_class'::regclass then exists (
				select from pg_class c left join pg_index i on i.indexrelid = c.oid left join pg_class t on t.oid = i.indrelid
				where c.oid = d.objid and (c.relkind in ('r', 'S') and c.relname ~ '^[qa]_'
					or c.relkind = 'i' and c.relname ~ '^([qa]_|archived_at_idx_)' and t.relname ~ '^[qa]_'))
			else d.classid in ('pg_policy'::regclass, 'pg_trigger'::regclass, 'pg_constraint'::regclass, 'pg_attrdef'::regclass)
		end;
	if found then
		raise insufficient_privilege using
			message = 'the schema pgmq belongs to the platform: a project has only tables of queues in it, named q_… and a_…';
	end if;
end $$;
revoke execute on function socle.refuse_queue_ddl() from public;
create event trigger socle_refuse_queue_ddl on ddl_command_end
	when tag in ('CREATE TABLE', 'CREATE TABLE AS', 'SELECT INTO', 'ALTER TABLE', 'CREATE VIEW', 'ALTER VIEW', 'CREATE MATERIALIZED VIEW',
		'ALTER MATERIALIZED VIEW', 'CREATE INDEX', 'ALTER INDEX', 'CREATE SEQUENCE', 'ALTER SEQUENCE', 'CREATE FUNCTION', 'ALTER FUNCTION',
		'CREATE PROCEDURE', 'ALTER PROCEDURE', 'ALTER ROUTINE', 'CREATE AGGREGATE', 'ALTER AGGREGATE', 'CREATE TYPE', 'ALTER TYPE',
		'CREATE DOMAIN', 'ALTER DOMAIN', 'CREATE OPERATOR', 'ALTER OPERATOR', 'CREATE STATISTICS', 'ALTER STATISTICS',
		'CREATE COLLATION', 'ALTER COLLATION', 'CREATE FOREIGN TABLE', 'ALTER FOREIGN TABLE', 'CREATE SCHEMA', 'IMPORT FOREIGN SCHEMA',
		'CREATE TEXT SEARCH CONFIGURATION', 'ALTER TEXT SEARCH CONFIGURATION', 'CREATE TEXT SEARCH DICTIONARY',
		'ALTER TEXT SEARCH DICTIONARY', 'CREATE CONVERSION', 'ALTER CONVERSION', 'CREATE OPERATOR CLASS', 'ALTER OPERATOR CLASS',
		'CREATE OPERATOR FAMILY', 'ALTER OPERATOR FAMILY')
	execute function socle.refuse_queue_ddl();
-- +goose StatementEnd
