package lifecycle_test

import (
	"strings"
	"testing"

	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/pgcluster"
	"github.com/socle-dev/socle/internal/pgtest"
	"github.com/socle-dev/socle/internal/projectdb/projectdbtest"
)

// TestServices checks what SQL for Supabase does with cron, net and realtime.
func TestServices(t *testing.T) {
	t.Parallel()

	p := projectdbtest.New(t)
	conn := projectdbtest.Connect(t, p, pgcluster.Owner)
	pgtest.Exec(t, conn, `
		select cron.schedule('nightly', '0 3 * * *', $$select 1$$);
		select cron.schedule(job_name => 'nightly', schedule => '30 seconds', command => 'select 2');
		select cron.schedule('*/5 * * * *', 'select net.http_post(''https://example.com'')');
		select cron.alter_job(2, schedule => '@daily', active => false);
		create table public.posts (id int);
		create policy write on public.posts for insert to authenticated with check (true);
		create function public.tell() returns trigger language plpgsql as $$ begin
			perform realtime.send('{}', 'insert', 'posts', false);
			perform realtime.broadcast_changes('posts', tg_op, tg_op, tg_table_name, tg_table_schema, new, old);
			return null; end $$;
		create trigger tell after insert on public.posts for each row execute function public.tell();
		create function public.hook() returns trigger language plpgsql as $$ begin
			perform net.http_post(url := 'https://example.com', body := to_jsonb(new)); return null; end $$;
		alter table realtime.messages enable row level security;
		create policy listen on realtime.messages for select to authenticated using (realtime.topic() = 'room' and extension = 'broadcast');
		drop policy listen on realtime.messages;
		create policy listen on realtime.messages for select to authenticated using (realtime.topic() = 'room');
		insert into public.posts values (1);
		grant insert on public.posts to authenticated`)

	const jobs = `select string_agg(concat_ws('|', jobid, jobname, schedule, active), ';' order by jobid) from cron.job`
	if got, want := pgtest.Value[string](t, conn, jobs), "1|nightly|30 seconds|t;2|@daily|f"; got != want {
		t.Errorf("got the jobs %s, want %s", got, want)
	}

	for sql, want := range map[string]string{
		`select cron.unschedule('nightly'), cron.unschedule(2)`:                           "",
		`select cron.unschedule(jobid) from cron.job where jobname = 'nightly'`:           "",
		`delete from cron.job; select * from cron.job_run_details`:                        "",
		`update cron.job set active = false`:                                              "",
		`select cron.unschedule('unknown')`:                                               "42704",
		`select cron.schedule_in_database('a', '* * * * *', 'select 1', 'postgres')`:      "0A000",
		`select cron.schedule('a', '* * * * *', repeat('x', 65537))`:                      "22023",
		`select cron.schedule('a' || n, '* * * * *', 'x') from generate_series(1, 199) n`: "54000",
		`update cron.job set schedule = 'x'`:                                              "42501",
		`create table cron.mine ()`:                                                       "42501",
		`create view public.v as select * from cron.job`:                                  "",
		`create trigger hook after insert on public.posts for each row execute function public.hook(); insert into public.posts values (1)`: "",
		`select 1/(((net.http_collect_response(net.http_get('https://example.com'))).status = 'PENDING')::int - 1)`:                         "22012",
		`select net.http_get('https://example.com')`:                                                       "",
		`insert into realtime.messages (topic, extension) values ('a', 'broadcast')`:                       "",
		`alter table realtime.messages disable row level security`:                                         "42501",
		`alter table realtime.messages add column a int`:                                                   "42501",
		`drop table realtime.messages`:                                                                     "42501",
		`drop trigger socle_queue_message on realtime.messages`:                                            "42501",
		`alter table realtime.messages disable trigger all`:                                                "42501",
		`create table public.m (id uuid, at timestamp, foreign key (id, at) references realtime.messages)`: "42501",
		`create policy p on public.posts using (exists (select from realtime.messages))`:                   "42501",
	} {
		if got := pgtest.State(t, conn, "begin; "+sql); got != want {
			t.Errorf("%s: got state %q, want %q", sql, got, want)
		}
		pgtest.Exec(t, conn, "rollback")
	}

	request := projectdbtest.Connect(t, p, pgcluster.Request)
	pgtest.Exec(t, request, `set role authenticated; insert into public.posts values (2); select * from realtime.messages`)
	for _, sql := range []string{`select * from cron.job`, `select cron.schedule('a', '* * * * *', 'x')`} {
		if got := pgtest.State(t, request, sql); got != "42501" {
			t.Errorf("%s as authenticated: got state %q, want 42501", sql, got)
		}
	}
}

func TestSchedules(t *testing.T) {
	t.Parallel()

	conn := projectdbtest.Connect(t, projectdbtest.New(t), pgcluster.Owner)
	for text, valid := range map[string]bool{
		"* * * * *": true, "0 3 * * *": true, "*/5 0-6,8 1 jan-mar mon": true, "0 0 $ * *": true, "59 23 31 12 7": true,
		"1 second": true, "30 seconds": true, "59 seconds": true,
		" 05  SECONDS ": true, "1-5/2 * * * mon-5": true, "0 0 29 2 */7": true, "0 0 31 4 1": true,
		"@hourly": true, "10-20/2 * * * SUN,6": true,
		"": false, "x": false, "* * * *": false, "* * * * * *": false, "60 * * * *": false, "* 24 * * *": false,
		"* * 0 * *": false, "* * * 13 *": false, "* * * * 8": false, "20-10 * * * *": false, "*/0 * * * *": false,
		"60 seconds": false, "0 seconds": false, "1 minute": false, "jan * * * *": false, "$ * * * *": false,
		"@never": false, "@reboot": false, "0 0 30 2 *": false, "0 0 31 4,6 *": false, ", * * * *": false,
		"0,, * * * *":     false,
		"* * * * fri-mon": false,
		"*/60 * * * *":    true, "0 0 */100 * *": true, "*/10000 * * * *": false, "$-1 * * * *": false,
		"0 0 $/2 * *": false,
	} {
		state := pgtest.State(t, conn, "select cron.check_schedule('"+text+"')")
		if (state == "") != valid || (state != "" && state != "22023") {
			t.Errorf("%q: got state %q, want valid %v", text, state, valid)
		}
	}
}

func TestEmptyJobs(t *testing.T) {
	t.Parallel()

	conn := projectdbtest.Connect(t, projectdbtest.New(t), pgcluster.Owner)
	pgtest.Exec(t, conn, `select cron.schedule('nightly', '0 3 * * *', 'select 1')`)
	for sql, want := range map[string]string{
		`select cron.schedule('', '* * * * *', 'select 1')`:        "name is empty",
		`select cron.schedule('a', '', 'select 1')`:                "schedule is empty",
		`select cron.schedule('a', ' ', 'select 1')`:               "schedule is empty",
		`select cron.schedule(null, 'select 1')`:                   "schedule is empty",
		`select cron.schedule('', 'select 1')`:                     "schedule is empty",
		`select cron.schedule('a', '* * * * *', '')`:               "command is empty",
		`select cron.schedule('a', '* * * * *', E'\n ;')`:          "command is empty",
		`select cron.schedule('* * * * *', null)`:                  "command is empty",
		`select cron.alter_job(1, schedule => '')`:                 "schedule is empty",
		`select cron.alter_job(1, command => '')`:                  "command is empty",
		`select cron.alter_job(1, command => repeat('x', 65537))`:  "at most 65536 bytes",
		`select cron.schedule(repeat('x', 256), '* * * * *', 'x')`: "at most 255 bytes",
	} {
		_, err := conn.Exec(t.Context(), sql)
		if err == nil || pg.State(err) != "22023" || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want 22023 and %q", sql, err, want)
		}
	}
}

// TestOwnServiceSchema checks that a project keeps a schema cron that it had before the platform's.
func TestOwnServiceSchema(t *testing.T) {
	t.Parallel()

	conn, login, provision := newFormerProject(t, 46)
	pgtest.Exec(t, conn, `create schema cron authorization `+login+`; create table cron.job (id int); insert into cron.job values (7);
		alter table cron.job owner to `+login)

	owner := provision()
	if got := pgtest.Value[int](t, owner, `select id from cron.job`); got != 7 {
		t.Errorf("got %d in the project's own table, want 7", got)
	}
	pgtest.Exec(t, owner, `create table cron.mine (); select net.http_get('x') where false`)
}

// TestOwnRequestSchemas checks that a project keeps its own schemas net and supabase_functions, and
// that the server finds no work in them.
func TestOwnRequestSchemas(t *testing.T) {
	t.Parallel()

	conn, login, provision := newFormerProject(t, 47)
	pgtest.Exec(t, conn, `create schema net authorization `+login+`; create schema supabase_functions authorization `+login+`;
		create function net.http_get(url text) returns text language sql return url;
		create function supabase_functions.http_request() returns trigger language plpgsql as 'begin return new; end';
		alter function net.http_get(text) owner to `+login+`; alter function supabase_functions.http_request() owner to `+login)

	owner := provision()
	if got := pgtest.Value[string](t, owner, `select net.http_get('own')`); got != "own" {
		t.Errorf("got %s from the project's own function, want own", got)
	}
	pgtest.Exec(t, owner, `create table net.http_request_queue (); drop function net.http_get(text);
		create table public.t (a int); create trigger t before insert on public.t for each row execute function supabase_functions.http_request();
		insert into public.t values (1); drop schema supabase_functions cascade; drop schema net cascade; select realtime.send('{}', 'a', 'b')`)
}
