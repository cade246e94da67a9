-- +goose Up
-- The functions of migration 48, with a sentence for a name, a schedule or a command that is empty. A project that has a schema cron
-- of its own keeps it.

-- +goose StatementBegin
do $migration$
begin
	if not exists (
		select from pg_namespace n join pg_roles r on r.oid = n.nspowner where n.nspname = 'cron' and r.rolname = current_user) then
		return;
	end if;

	create function cron.check_command(command text) returns void
	language plpgsql immutable set search_path = pg_catalog, pg_temp as $$
	begin
		if btrim(coalesce(command, ''), E' \t\r\n;') = '' then
			raise invalid_parameter_value using message = 'cron: the command is empty', hint = 'A command is SQL.';
		elsif octet_length(command) > 65536 then
			raise invalid_parameter_value using message = 'cron: a command has at most 65536 bytes';
		end if;
	end $$;
	revoke execute on function cron.check_command(text) from public;

	create or replace function cron.check_schedule(schedule text) returns void
	language plpgsql immutable set search_path = pg_catalog, pg_temp as $$
	declare
		fields constant text[] := regexp_split_to_array(btrim(schedule, E' \t'), '[ \t]+');
		lowest constant integer[] := '{0,0,1,1,0}';
		highest constant integer[] := '{59,23,31,12,7}';
		names constant text[] := array[null, null, null, 'jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec', 'sun|mon|tue|wed|thu|fri|sat'];
		part text;
		parts text[];
		valid boolean := coalesce(cardinality(fields) = 5 and octet_length(schedule) <= 255, false);
	begin
		if btrim(coalesce(schedule, ''), E' \t') = '' then
			raise invalid_parameter_value using message = 'cron: the schedule is empty',
				hint = 'Use cron format (e.g. 5 4 * * *), or interval format ''[1-59] seconds''';
		end if;
		if schedule ~* '^ *@(yearly|annually|monthly|weekly|daily|midnight|hourly|reboot) *$' or schedule ~ '^ *([1-9]|[1-5][0-9]) +seconds? *$' then
			return;
		end if;

		for i in 1 .. case when valid then 5 else 0 end loop
			foreach part in array string_to_array(fields[i], ',') loop
				continue when i = 3 and part = '$'; -- the last day of the month
				continue when part ~* ('^(' || names[i] || ')(-(' || names[i] || '))?$');
				parts := regexp_match(part, '^(?:\*|([0-9]{1,2})(?:-([0-9]{1,2}))?)(?:/([0-9]{1,2}))?$');
				valid := valid and parts is not null and coalesce(parts[1]::integer between lowest[i] and highest[i], true)
					and coalesce(parts[2]::integer between parts[1]::integer and highest[i], true) and coalesce(parts[3]::integer > 0, true);
			end loop;
		end loop;
		if not valid then
			raise invalid_parameter_value using message = format('invalid schedule: %s', left(schedule, 255)),
				hint = 'Use cron format (e.g. 5 4 * * *), or interval format ''[1-59] seconds''';
		end if;
	end $$;

	create or replace function cron.put_job(new_name text, new_schedule text, new_command text) returns bigint
	language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
	declare
		job bigint;
	begin
		perform cron.check_schedule(new_schedule);
		if new_name = '' then
			raise invalid_parameter_value using message = 'cron.schedule: the name is empty';
		end if;
		perform cron.check_command(new_command);
		if octet_length(new_name) > 255 then
			raise invalid_parameter_value using message = 'cron.schedule: a name has at most 255 bytes';
		end if;

		lock table cron.job in share row exclusive mode; -- each of two calls at once counts the job of the other
		insert into cron.job as j (jobid, jobname, schedule, command)
		select coalesce(max(k.jobid), 0) + 1, new_name, new_schedule, new_command from cron.job k
		on conflict (jobname) do update set schedule = excluded.schedule, command = excluded.command, active = true
		returning j.jobid into job;
		if (select count(*) from cron.job) > 200 then
			raise program_limit_exceeded using message = 'cron.schedule: a project has at most 200 jobs';
		end if;
		raise notice 'job % is recorded: schedules do not run yet', coalesce(new_name, job::text);
		return job;
	end $$;

	create or replace function cron.alter_job(job_id bigint, schedule text default null, command text default null, database text default null,
		username text default null, active boolean default null) returns void
	language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
	begin
		if database is not null or username is not null then
			raise feature_not_supported using message = 'cron.alter_job: database and username cannot be changed';
		end if;
		if schedule is not null then
			perform cron.check_schedule(schedule);
		end if;
		if command is not null then
			perform cron.check_command(command);
		end if;
		update cron.job j set schedule = coalesce(alter_job.schedule, j.schedule), command = coalesce(alter_job.command, j.command),
			active = coalesce(alter_job.active, j.active)
		where j.jobid = job_id;
		if not found then
			raise undefined_object using message = format('could not find valid entry for job ''%s''', job_id);
		end if;
	end $$;
end $migration$;
-- +goose StatementEnd
