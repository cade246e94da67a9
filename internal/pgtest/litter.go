package pgtest

// LitterSQL creates user code that changes all that a session has beyond a transaction, and a
// function that shows leftovers.
//
//	select public.litter('anon')
//	select public.leftovers() -- equals NoLeftovers in a clean session
//
// litter leaves out changes that its transaction or its login may not make: a read-only one no
// table, one in a foreign key's trigger no role.
const LitterSQL = `
	create sequence public.littered;
	grant all on sequence public.littered to public;
	create function public.litter(becoming text default 'authenticated') returns boolean language plpgsql volatile as $litter$ begin
		perform set_config('app.left', 'behind', false), set_config('default_transaction_read_only', 'on', false),
			set_config('work_mem', '4MB', false), set_config('search_path', 'pg_temp', false);
		perform pg_advisory_lock(4711), pg_advisory_lock_shared(4712);
		execute 'listen residue';
		execute 'declare residue cursor with hold for select 1';
		execute format('prepare %I as select 1', gen_random_uuid());
		if not current_setting('transaction_read_only')::bool then
			perform nextval('public.littered');
			begin
				create temp table residue_table (id int);
			exception when insufficient_privilege then null;
			end;
		end if;
		begin
			perform set_config('session_authorization', session_user, false), set_config('role', becoming, false);
		exception when insufficient_privilege then null;
		end;
		return true;
	end $litter$;
	create function public.leftovers() returns text language plpgsql volatile set search_path = pg_catalog as $leftovers$
	declare last_value text := 'none'; begin
		begin last_value := lastval(); exception when object_not_in_prerequisite_state then null; end;
		return (select concat_ws(', ',
			'role ' || nullif(current_user, session_user),
			'settings ' || (select string_agg(name, ' ' order by name) from pg_settings
				where source = 'session' and name !~ '^transaction_' and name <> 'search_path'),
			'setting ' || nullif(current_setting('app.left', true), ''),
			'locks ' || (select string_agg(objid::text, ' ' order by objid) from pg_locks where locktype = 'advisory' and pid = pg_backend_pid()),
			'channels ' || (select string_agg(c, ' ') from pg_listening_channels() c),
			'prepared ' || (select nullif(count(*), 0) from pg_prepared_statements where from_sql),
			'cursors ' || (select string_agg(name, ' ') from pg_cursors where is_holdable),
			'table ' || to_regclass('pg_temp.residue_table'),
			'last value ' || nullif(last_value, 'none')));
	end $leftovers$;
	grant execute on function public.litter, public.leftovers to public`

// NoLeftovers is the result from leftovers in a clean session.
const NoLeftovers = ""
