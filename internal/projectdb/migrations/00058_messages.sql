-- +goose Up
-- realtime.send and its siblings deliver: a message is a row of realtime.messages, kept for three days for channels that replay it.
-- A row of socle.unsent_messages makes the server send it.

create table socle.unsent_messages (
	seq bigint generated always as identity primary key,
	id uuid not null,
	inserted_at timestamp not null
);
comment on table socle.unsent_messages is 'rows of realtime.messages that no server has sent yet';
alter table socle.unsent_messages disable row level security;

alter table realtime.messages add column binary_payload bytea;
create index messages_inserted_at on realtime.messages (inserted_at);
comment on table realtime.messages is 'messages to channels, for three days, and policies for private channels';
drop trigger refuse_rows on realtime.messages;
drop function realtime.refuse_rows();

-- Both triggers run as the role that inserts, but the second one needs a right that no role has.
-- +goose StatementBegin
create function realtime.check_message() returns trigger
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
	if octet_length(new.topic) not between 1 and 246 or octet_length(new.event) > 255 then
		raise invalid_parameter_value using message = 'a message has a topic of 1 to 246 bytes, and an event of at most 255';
	end if;
	if octet_length(new.payload::text) > 262144 or octet_length(new.binary_payload) > 262144 then
		raise program_limit_exceeded using message = 'the payload of a message has at most 262144 bytes';
	end if;
	-- The time is the server's, since the oldest messages are removed first.
	new.inserted_at := clock_timestamp() at time zone 'UTC';
	return new;
end $$;
create function realtime.queue_message() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
	added bigint;
begin
	insert into socle.unsent_messages as m (id, inserted_at) values (new.id, new.inserted_at) returning m.seq into added;
	if added - (select m.seq from socle.unsent_messages m order by m.seq limit 1) >= 100000 then
		raise program_limit_exceeded using message = '100000 messages wait to be sent: a project can have no more';
	end if;
	return null;
end $$;
-- +goose StatementEnd
create trigger socle_check_message before insert on realtime.messages for each row execute function realtime.check_message();
create trigger socle_queue_message after insert on realtime.messages for each row when (new.extension = 'broadcast')
	execute function realtime.queue_message();

-- A message that can't be stored is a warning, so that the transaction around it goes on.
-- +goose StatementBegin
create function realtime.put_message(topic text, event text, private boolean, payload jsonb, binary_payload bytea) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
	message constant uuid := gen_random_uuid();
begin
	if jsonb_typeof(put_message.payload) = 'object' and not put_message.payload ? 'id' then
		put_message.payload := put_message.payload || jsonb_build_object('id', message);
	end if;

	perform set_config('realtime.topic', put_message.topic, true);
	insert into realtime.messages (id, topic, extension, event, private, payload, binary_payload)
	values (message, put_message.topic, 'broadcast', put_message.event, put_message.private, put_message.payload,
		put_message.binary_payload);
exception when others then
	raise warning 'the message to topic % is left out: %', left(put_message.topic, 246), sqlerrm;
end $$;
create or replace function realtime.send(payload jsonb, event text, topic text, private boolean default true) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
	perform realtime.put_message(topic, event, private, coalesce(payload, '{}'), null);
end $$;
create function realtime.send_binary(payload bytea, event text, topic text, private boolean default true) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
	perform realtime.put_message(topic, event, private, null, coalesce(payload, ''));
end $$;
create or replace function realtime.broadcast_changes(topic_name text, event_name text, operation text, table_name text, table_schema text,
	new record, old record, level text default 'ROW') returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
	if level = 'STATEMENT' then
		raise feature_not_supported using message = 'realtime.broadcast_changes: a trigger for each row calls it, not one for each statement';
	end if;
	perform realtime.send(jsonb_build_object('schema', table_schema, 'table', table_name, 'operation', operation,
		'record', new, 'old_record', old), event_name, topic_name);
end $$;
-- +goose StatementEnd
revoke execute on function realtime.check_message(), realtime.queue_message(),
	realtime.put_message(text, text, boolean, jsonb, bytea), realtime.send_binary(bytea, text, text, boolean) from public;
grant execute on function realtime.put_message(text, text, boolean, jsonb, bytea),
	realtime.send_binary(bytea, text, text, boolean) to anon, authenticated, service_role;
