-- +goose Up
-- What an administrator sets for the channels and the log of changes of a project.

create table socle.realtime_limits (
	singleton boolean primary key default true,
	sockets integer,
	channels integer,
	channels_per_socket integer,
	joins_per_second integer,
	messages_per_second integer,
	deliveries_per_second integer,
	payload_bytes integer,
	log_hours integer,
	log_bytes bigint,
	constraint realtime_limits_singleton check (singleton)
);
alter table socle.realtime_limits disable row level security;
comment on table socle.realtime_limits is 'one row at most; null stands for the default';

-- +goose StatementBegin
-- spread_events has new changes go to the ten slots so that eight of them cover what is kept. Readers know no slots, so
-- changes in slots of another length stay where they are.
create function socle.spread_events(kept interval) returns void
language plpgsql set search_path = pg_catalog, pg_temp set lock_timeout = '300ms' as $$
declare
	seconds constant bigint := date_part('epoch', kept)::bigint / 8;
	present constant text := (select pg_get_expr(d.adbin, d.adrelid) from pg_attrdef d
		join pg_attribute a on a.attrelid = d.adrelid and a.attnum = d.adnum
		where d.adrelid = 'socle.events'::regclass and a.attname = 'slot');
begin
	if present not like format('%%/ (%s)::double precision%%', seconds) then
		execute format('alter table only socle.events alter column slot
			set default (floor(date_part(''epoch'', clock_timestamp()) / %s)::bigint %% 10)::smallint', seconds);
	end if;
end $$;
-- +goose StatementEnd

-- +goose StatementBegin
-- remove_events empties the slots whose last change is older than an interval, and the oldest ones while the log has more than
-- limit bytes.
create function socle.remove_events(bytes_limit bigint, kept interval) returns void
language plpgsql set search_path = pg_catalog, pg_temp set lock_timeout = '300ms' as $$
declare
	total bigint := (select sum(pg_total_relation_size(inhrelid)) from pg_inherits where inhparent = 'socle.events'::regclass);
	slots constant integer[] := array(
		select s.n from generate_series(0, 9) s(n)
		cross join lateral (select e.xid from socle.events e where e.slot = s.n::smallint order by e.xid desc limit 1) newest
		order by newest.xid);
	slot integer;
	last record;
begin
	foreach slot in array slots loop
		execute format('select at from socle.events_%s order by xid desc, seq desc limit 1', slot) into last;
		continue when last.at >= clock_timestamp() - kept and total <= bytes_limit;
		execute format('lock table socle.events_%s in access exclusive mode', slot);
		execute format('select xid, pg_total_relation_size(tableoid) as size from socle.events_%s order by xid desc limit 1', slot)
			into last;
		insert into socle.events_removed as r (xid) values (last.xid)
		on conflict (single) do update set xid = greatest(r.xid, excluded.xid);
		total := total - last.size;
		execute format('truncate socle.events_%s', slot);
	end loop;
end $$;
-- +goose StatementEnd

-- The previous release calls this one.
create or replace function socle.remove_events(bytes_limit bigint) returns void
language sql set search_path = pg_catalog, pg_temp
return socle.remove_events(bytes_limit, interval '1 day');

revoke execute on function socle.spread_events(interval), socle.remove_events(bigint, interval) from public;
