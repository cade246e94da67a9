-- +goose Up
-- Schedules run: what pg_cron does not know of a job, and its runs. A project that has a schema cron of its own keeps it.

-- +goose StatementBegin
do $migration$
begin
	if not exists (
		select from pg_namespace n join pg_roles r on r.oid = n.nspowner where n.nspname = 'cron' and r.rolname = current_user) then
		return;
	end if;

	alter table cron.job
		add column timezone text not null default 'UTC',
		add column overlap text not null default 'skip' constraint job_overlap check (overlap in ('skip', 'queue')),
		add column timeout_seconds integer not null default 600 constraint job_timeout check (timeout_seconds between 1 and 600),
		add column url text,
		add column next_run_at timestamptz,
		add constraint job_target check (url is null or command = '');
	comment on table cron.job is 'schedules of the project';
	comment on column cron.job.timezone is 'time zone of the schedule, such as Europe/Berlin';
	comment on column cron.job.overlap is 'what happens when a run is due while one is in progress: skip it, or queue it';
	comment on column cron.job.timeout_seconds is 'time limit of a run';
	comment on column cron.job.url is 'endpoint that a run calls instead of a command';
	comment on column cron.job.next_run_at is 'when the next run is due; infinity: never, null: not computed yet';
	-- No number is used twice, also after a restore, which leaves the sequence behind.
	create sequence cron.jobid_seq;
	create function cron.next_jobid() returns bigint
	language sql volatile security definer set search_path = pg_catalog, pg_temp as $$
		select setval('cron.jobid_seq', greatest(nextval('cron.jobid_seq'), (select max(jobid) + 1 from cron.job)));
	$$;
	alter table cron.job alter column jobid set default cron.next_jobid();

	create sequence cron.runid_seq;
	alter table cron.job_run_details
		alter column runid set default nextval('cron.runid_seq'),
		add column scheduled_at timestamptz,
		add column session_start timestamptz,
		add column occurrences integer not null default 1;
	comment on table cron.job_run_details is 'runs of jobs: at most 1,000 of a job, for a week';
	comment on column cron.job_run_details.status is 'queued, starting, running, succeeded, failed, skipped or missed';
	comment on column cron.job_run_details.scheduled_at is 'when the run was due; null: on request';
	comment on column cron.job_run_details.session_start is 'when the session job_pid began: a run without its session has ended';
	comment on column cron.job_run_details.occurrences is 'number of due times that a skipped run stands for';
	create index job_run_details_jobid_idx on cron.job_run_details (jobid, runid);
	create index job_run_details_unfinished_idx on cron.job_run_details (jobid) where status in ('queued', 'starting', 'running');
	create unique index job_run_details_queued_idx on cron.job_run_details (jobid) where status = 'queued';

	-- The rules of timetable.ParseSchedule.
	create or replace function cron.check_schedule(schedule text) returns void
	language plpgsql stable set search_path = pg_catalog, pg_temp as $$
	declare
		fields constant text[] := regexp_split_to_array(btrim(lower(schedule collate "C"), E' \t\n\v\f\r'), E'[ \t\n\v\f\r]+');
		lowest constant integer[] := '{0,0,1,1,0}';
		highest constant integer[] := '{59,23,31,12,7}';
		names constant text[] := array['[0-9]{1,2}', '[0-9]{1,2}', '[0-9]{1,2}', 'jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec', 'sun|mon|tue|wed|thu|fri|sat'];
		days integer[] := '{}'; -- 0: the last day of the month
		months integer[] := '{}';
		weekdays integer[] := '{}';
		item text;
		parts text[];
		bounds integer[];
		numbers integer[];
		valid boolean := coalesce(cardinality(fields) = 5 and octet_length(schedule) <= 255, false);
	begin
		if coalesce(fields, '{""}') = '{""}' then
			raise invalid_parameter_value using message = 'cron: the schedule is empty',
				hint = 'Use cron format (e.g. 5 4 * * *), or interval format ''[1-59] seconds''';
		end if;
		if octet_length(schedule) <= 255 and (
			cardinality(fields) = 1 and fields[1] in ('@yearly', '@annually', '@monthly', '@weekly', '@daily', '@midnight', '@hourly')
			or cardinality(fields) = 2 and fields[1] ~ '^(0?[1-9]|[1-5][0-9])$' and fields[2] in ('second', 'seconds')) then
			return;
		end if;

		for i in 1 .. case when valid then 5 else 0 end loop
			foreach item in array string_to_array(fields[i], ',') loop
				if i = 3 and item = '$' then
					days := days || 0;
					continue;
				end if;

				parts := regexp_match(item, format('^(\*|([0-9]{1,2}|%1$s)(-([0-9]{1,2}|%1$s))?)(/([0-9]{1,2}))?$', names[i]));
				valid := valid and parts is not null;
				exit when not valid;

				-- A name is a number, from the field's lowest on.
				select array_agg(case when p ~ '^[0-9]' then p::integer else lowest[i] + array_position(string_to_array(names[i], '|'), p) - 1 end order by n)
				into bounds from unnest(array[parts[2], parts[4], parts[6]]) with ordinality v(p, n);
				if parts[1] = '*' then
					bounds[1:2] := array[lowest[i], highest[i]];
				elsif bounds[2] is null then
					bounds[2] := case when bounds[3] is null then bounds[1] else highest[i] end;
				end if;
				valid := bounds[1] >= lowest[i] and bounds[1] <= bounds[2] and bounds[2] <= highest[i]
					and coalesce(bounds[3] between 1 and highest[i], true);
				exit when not valid;

				numbers := array(select generate_series(bounds[1], bounds[2], coalesce(bounds[3], 1)));
				case i
					when 3 then days := days || numbers;
					when 4 then months := months || numbers;
					when 5 then weekdays := weekdays || array(select n % 7 from unnest(numbers) n);
					else
				end case;
			end loop;
		end loop;

		-- A day must match both fields if one of them begins with *, as in cron. Leap days on one day of the week can be forty
		-- years apart.
		if valid then
			select true into valid
			from generate_series(0, 41 * 366 - 1) n,
				lateral (select (now() at time zone 'UTC')::date + n as day) d,
				lateral (select
					extract(day from day)::integer = any(days) or (0 = any(days) and extract(day from day + 1) = 1) as of_month,
					extract(dow from day)::integer = any(weekdays) as of_week) m
			where extract(month from day)::integer = any(months) and case
				when fields[3] like '*%' or fields[5] like '*%' then of_month and of_week else of_month or of_week end
			limit 1;
		end if;
		if valid is not true then
			raise invalid_parameter_value using message = format('invalid schedule: %s', left(schedule, 255)),
				hint = 'Use cron format (e.g. 5 4 * * *), or interval format ''[1-59] seconds''';
		end if;
	end $$;

	-- A job that changes is due by its new schedule.
	create function cron.plan_job() returns trigger
	language plpgsql set search_path = pg_catalog, pg_temp as $$
	begin
		if tg_op = 'INSERT' and (select count(*) from cron.job) >= 200 then
			raise program_limit_exceeded using message = 'cron.schedule: a project has at most 200 jobs';
		end if;
		if new.timezone <> 'UTC' and (tg_op = 'INSERT' or new.timezone <> old.timezone) then -- the view reads hundreds of files
			perform from pg_timezone_names z where z.name = new.timezone;
			if not found then
				raise invalid_parameter_value using message = format('cron: %L is not a time zone', left(new.timezone, 100)),
					hint = 'Use the name of a time zone, such as Europe/Berlin or UTC.';
			end if;
		end if;
		if tg_op = 'INSERT' or (new.schedule, new.timezone, new.active) is distinct from (old.schedule, old.timezone, old.active) then
			new.next_run_at := null;
		end if;
		return new;
	end $$;
	create trigger plan_job before insert or update of schedule, timezone, active on cron.job for each row execute function cron.plan_job();

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

		lock table cron.job in share row exclusive mode; -- the trigger counts the jobs of other calls
		update cron.job j set schedule = new_schedule, command = new_command, url = null, active = true
		where j.jobname = new_name returning j.jobid into job;
		if found then
			return job;
		end if;
		insert into cron.job (jobname, schedule, command) values (new_name, new_schedule, new_command) returning jobid into job;
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
			url = case when alter_job.command is null then j.url end, active = coalesce(alter_job.active, j.active)
		where j.jobid = job_id;
		if not found then
			raise undefined_object using message = format('could not find valid entry for job ''%s''', job_id);
		end if;
	end $$;
	revoke execute on all functions in schema cron from public;
end $migration$;

-- Every project has this function, also one with a schema cron of its own: servers ask it in one statement with other questions.
create function socle.has_unplanned_jobs() returns boolean
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
begin
	if not exists (select from pg_namespace c join pg_namespace s on s.nspowner = c.nspowner where c.nspname = 'cron' and s.nspname = 'socle') then
		return false;
	end if;
	return exists (select from cron.job where next_run_at is null);
end $$;
revoke execute on function socle.has_unplanned_jobs() from public;
-- +goose StatementEnd
