-- +goose Up
-- A step of a schedule can be larger than its field, as in pg_cron: only the first value matches. net.http_collect_response is what
-- pg_net's guides call to read a response.

-- +goose StatementBegin
do $migration$
declare
	definition text;
	changed text;
begin
	if (select nspowner from pg_namespace where nspname = 'cron') is distinct from (
		select nspowner from pg_namespace where nspname = 'socle') then
		return;
	end if;

	definition := pg_get_functiondef('cron.check_schedule(text)'::regprocedure);
	changed := replace(replace(definition, '(/([0-9]{1,2}))?$', '(/([0-9]{1,4}))?$'), 'bounds[3] between 1 and highest[i]', 'bounds[3] > 0');
	if length(changed) <> length(definition) + length('> 0') - length('between 1 and highest[i]') then
		raise exception 'cron.check_schedule has changed';
	end if;
	execute changed;
end $migration$;

do $migration$
begin
	if (select nspowner from pg_namespace where nspname = 'net') is distinct from (
		select nspowner from pg_namespace where nspname = 'socle') then
		return;
	end if;

	create type net.request_status as enum ('PENDING', 'SUCCESS', 'ERROR');
	create type net.http_response as (status_code integer, headers jsonb, body text);
	create type net.http_response_result as (status net.request_status, message text, response net.http_response);
	-- A request leaves after its transaction, so that there is nothing to wait for: async changes nothing.
	create function net.http_collect_response(request_id bigint, async boolean default true) returns net.http_response_result
	language plpgsql set search_path = pg_catalog, pg_temp as $$
	declare
		outcome net._http_response;
	begin
		select r.* into outcome from net._http_response r where r.id = request_id;
		return case
			when outcome.id is not null and outcome.error_msg is null
				then row('SUCCESS', 'ok', row(outcome.status_code, outcome.headers, outcome.content)::net.http_response)::net.http_response_result
			when outcome.id is not null then row('ERROR', outcome.error_msg, null)::net.http_response_result
			when exists (select from net.http_request_queue q where q.id = request_id)
				then row('PENDING', 'request is pending', null)::net.http_response_result
			else row('ERROR', 'request matching request_id not found', null)::net.http_response_result
		end;
	end $$;
	revoke execute on function net.http_collect_response(bigint, boolean) from public;
end $migration$;
-- +goose StatementEnd
