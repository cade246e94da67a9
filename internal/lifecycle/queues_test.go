package lifecycle_test

import (
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/pgcluster"
	"github.com/socle-dev/socle/internal/pgtest"
	"github.com/socle-dev/socle/internal/projectdb"
	"github.com/socle-dev/socle/internal/projectdb/projectdbtest"
)

// TestQueues sends, reads and removes messages by pgmq's functions.
func TestQueues(t *testing.T) {
	t.Parallel()

	conn := projectdbtest.Connect(t, projectdbtest.New(t), pgcluster.Owner)
	pgtest.Exec(t, conn, `select pgmq.create('Tasks'); select pgmq.create('tasks'); select pgmq.create_unlogged('fast');
		select pgmq.create_non_partitioned('plain')`)

	for _, step := range []struct{ sql, want string }{
		{`select string_agg(queue_name || ' ' || is_unlogged || ' ' || (created_at <= now()), ',') from pgmq.list_queues()`,
			"fast true true,plain false true,tasks false true"},
		{`select string_agg(attname || ' ' || format_type(atttypid, -1), ',' order by attnum) from pg_attribute
			where attrelid = 'pgmq.q_tasks'::regclass and attnum > 0`,
			"msg_id bigint,read_ct integer,enqueued_at timestamp with time zone,vt timestamp with time zone,message jsonb,headers jsonb"},
		{`select relrowsecurity::text from pg_class where oid = 'pgmq.q_tasks'::regclass`, "true"},
		{`select pgmq.send('tasks', '{"n": 1}')::text`, "1"},
		{`select pgmq.send('tasks', '{"n": 2}', '{"trace": "a"}'::jsonb)::text`, "2"},
		{`select pgmq.send('tasks', '{"n": 3}', 3600)::text`, "3"},
		{`select pgmq.send('tasks', '{"n": 4}', now() + interval '1 hour')::text`, "4"},
		{`select pgmq.send(queue_name => 'tasks', msg => '{"n": 5}', headers => '{"h": 1}', delay => 0)::text`, "5"},
		{`select pgmq.send('tasks', '{"n": 6}', '{"h": 2}'::jsonb, now() + interval '1 hour')::text`, "6"},
		{`select string_agg(i::text, ',') from pgmq.send_batch('tasks', array['{"n": 7}', '{"n": 8}']::jsonb[]) i`, "7,8"},
		{`select string_agg(i::text, ',') from pgmq.send_batch('tasks', array['{"n": 9}']::jsonb[], array['{"h": 9}']::jsonb[], 60) i`, "9"},
		{`select queue_length || ' ' || queue_visible_length || ' ' || total_messages from pgmq.metrics('tasks')`, "9 5 9"},
		{`select count(*)::text from pgmq.metrics_all()`, "3"},
		{`select msg_id || ' ' || read_ct || ' ' || (vt > now()) || ' ' || message || ' ' || headers from pgmq.read('tasks', 60, 10, '{"n": 2}')`,
			`2 1 true {"n": 2} {"trace": "a"}`},
		{`select string_agg(msg_id::text, ',') from pgmq.read('tasks', 60, 2)`, "1,5"},
		{`select (vt < now() + interval '10 s')::text from pgmq.set_vt('tasks', 5, 0)`, "true"},
		{`select string_agg(msg_id || ' ' || read_ct, ',') from pgmq.read_with_poll('tasks', 60, 1, 5, 50)`, "5 2"},
		{`select coalesce(string_agg(msg_id::text, ','), 'none') from pgmq.read_with_poll('fast', 60, 1, 0)`, "none"},
		{`select msg_id::text from pgmq.pop('tasks')`, "7"},
		{`select string_agg(msg_id::text, ',') from pgmq.set_vt('tasks', array[1, 99], 0)`, "1"},
		{`select pgmq.archive('tasks', 1) || ' ' || pgmq.archive('tasks', 1)`, "true false"},
		{`select string_agg(i::text, ',') from pgmq.archive('tasks', array[2, 99]) i`, "2"},
		{`select string_agg(msg_id || ' ' || message || ' ' || (archived_at <= now()), ',' order by msg_id) from pgmq.a_tasks`,
			`1 {"n": 1} true,2 {"n": 2} true`},
		{`select pgmq.delete('tasks', 3) || ' ' || pgmq.delete('tasks', 3)`, "true false"},
		{`select string_agg(i::text, ',' order by i) from pgmq.delete('tasks', array[4, 6, 99]) i`, "4,6"},
		{`select msg_id::text from pgmq.set_vt('tasks', 5, 0)`, "5"},
		{`select string_agg(i::text, ',') from pgmq.archive_dead('tasks', 2) i`, "5"},
		{`select pgmq.purge_queue('tasks')::text`, "2"},
		{`select pgmq.send('tasks', '{}')::text`, "10"},
		{`select coalesce(pgmq.detach_archive('tasks')::text, '')`, ""},
		{`select pgmq.drop_queue('tasks') || ' ' || pgmq.drop_queue('tasks')`, "true false"},
		{`select count(*)::text from pg_class where relnamespace = 'pgmq'::regnamespace and relname like '%tasks%'`, "0"},
	} {
		if got := pgtest.Value[string](t, conn, step.sql); got != step.want {
			t.Errorf("%s: got %q, want %q", step.sql, got, step.want)
		}
	}

	for sql, want := range map[string]string{
		`select pgmq.create('')`:                                                           "22023",
		`select pgmq.create(null)`:                                                         "22023",
		`select pgmq.create(repeat('x', 48))`:                                              "22023",
		`select pgmq.create('a;b')`:                                                        "22023",
		`select pgmq.create('a''b')`:                                                       "22023",
		`select pgmq.create('a--b')`:                                                       "22023",
		`select pgmq.create('a$b')`:                                                        "22023",
		`select pgmq.create_partitioned('p')`:                                              "0A000",
		`select pgmq.send('unknown', '{}')`:                                                "42P01",
		`select pgmq.send('plain', to_jsonb(repeat('x', 1048575)))`:                        "54000",
		`select pgmq.send('plain', '1', to_jsonb(repeat('x', 65535)))`:                     "54000",
		`select pgmq.send_batch('plain', '{}')`:                                            "22023",
		`select pgmq.send_batch('plain', array['1', '2']::jsonb[], array['1']::jsonb[])`:   "22023",
		`select pgmq.read('plain', 1, 1001)`:                                               "22023",
		`select pgmq.pop('plain', 0)`:                                                      "22023",
		`select pgmq.read_with_poll('plain', 1, 1, 31)`:                                    "22023",
		`select pgmq.read_with_poll('plain', 1, 1, 1, 1)`:                                  "22023",
		`select pgmq.archive_dead('plain', 0)`:                                             "22023",
		`create table pgmq.other (id int)`:                                                 "42501",
		`create function pgmq.send(text) returns int language sql as 'select 1'`:           "42501",
		`create view pgmq.q_view as select 1`:                                              "42501",
		`create type pgmq.q_type as enum ('a')`:                                            "42501",
		`create table public.q_moved (id int); alter table public.q_moved set schema pgmq`: "",
		`create table public.moved (id int); alter table public.moved set schema pgmq`:     "42501",
		`alter table pgmq.q_plain rename to meta2`:                                         "42501",
		`create domain public.d as int; alter domain public.d set schema pgmq`:             "42501",
		`create or replace function pgmq.purge_queue(queue_name text) returns bigint language sql as 'select 1::bigint'`: "42501",
		`drop function pgmq.purge_queue(text)`:       "42501",
		`drop schema pgmq cascade`:                   "42501",
		`create table pgmq_public.t ()`:              "42501",
		`alter table pgmq.meta add a int`:            "42501",
		`create index on pgmq.q_plain (enqueued_at)`: "",
		`alter table pgmq.q_plain add constraint small check (octet_length(message::text) < 99)`:                           "",
		`create policy p on pgmq.q_plain for select to authenticated using (message ->> 'user' = auth.uid()::text)`:        "",
		`create function public.f() returns setof pgmq.message_record language sql as 'select * from pgmq.pop(''plain'')'`: "",
	} {
		if got := pgtest.State(t, conn, "begin; "+sql); got != want {
			t.Errorf("%s: got state %q, want %q", sql, got, want)
		}
		pgtest.Exec(t, conn, "rollback")
	}
}

// TestManyQueues creates the last queue that a project may have. The platform's login creates
// tables like those of the others, without event triggers: pgmq.create takes forty times as long.
func TestManyQueues(t *testing.T) {
	t.Parallel()

	p := projectdbtest.New(t)
	pgtest.Exec(t, projectdbtest.Connect(t, p, pgcluster.Trusted), `set session_replication_role = replica;
		do $$ begin for i in 1..499 loop execute 'create table pgmq.q_many' || i || ' ()'; end loop; end $$`)

	conn := projectdbtest.Connect(t, p, pgcluster.Owner)
	for _, step := range []struct{ queue, want string }{
		{"last", ""}, {"last", ""}, {"beyond", "54000"}, {"beyond", "54000"},
	} {
		if got := pgtest.State(t, conn, `select pgmq.create('`+step.queue+`')`); got != step.want {
			t.Errorf("%s: got state %q, want %q", step.queue, got, step.want)
		}
	}

	if got := pgtest.Value[int](t, conn, `select count(*)::int from pgmq.list_queues()`); got != 500 {
		t.Errorf("got %d queues, want 500", got)
	}
}

// TestQueuesAreClosed checks that the roles of the rows API reach a queue's messages only by
// privileges and policies of the owner.
func TestQueuesAreClosed(t *testing.T) {
	t.Parallel()

	p := projectdbtest.New(t)
	owner := projectdbtest.Connect(t, p, pgcluster.Owner)
	pgtest.Exec(t, owner, `select pgmq.create('tasks'); select pgmq.send('tasks', '{"to": "all"}'); select pgmq.send('tasks', '{"to": "ops"}')`)

	request := projectdbtest.Connect(t, p, pgcluster.Request)
	calls := []string{`select pgmq_public.send('tasks', '{}')`, `select pgmq_public.send_batch('tasks', array['1']::jsonb[])`,
		`select pgmq_public.read('tasks', 1, 1)`, `select pgmq_public.pop('tasks')`,
		`select pgmq_public.archive('tasks', 1)`,
		`select pgmq_public.delete('tasks', 1)`, `select pgmq.send('tasks', '{}')`, `select * from pgmq.q_tasks`,
		`select pgmq.metrics('tasks')`, `select pgmq.list_queues()`, `select * from pgmq.meta`,
		`select pgmq.create('mine')`, `select pgmq.drop_queue('tasks')`, `select pgmq.purge_queue('tasks')`,
		`select pgmq.read_with_poll('tasks', 1, 1)`}
	for _, role := range []string{"anon", "authenticated"} {
		for _, sql := range calls {
			if got := pgtest.State(t, request, "begin; set local role "+role+"; "+sql); got != "42501" {
				t.Errorf("%s as %s: got state %q, want 42501", sql, role, got)
			}
			pgtest.Exec(t, request, "rollback")
		}
	}

	pgtest.Exec(t, owner, `grant select, update on pgmq.q_tasks to authenticated;
		create policy worker on pgmq.q_tasks for all to authenticated using (message ->> 'to' = 'all')`)
	pgtest.Exec(t, request, "set role authenticated")
	if got := pgtest.Value[string](t, request, `select string_agg(msg_id::text, ',') from pgmq_public.read('tasks', 60, 10)`); got != "1" {
		t.Errorf("authenticated reads the messages %s, want 1", got)
	}
	if got := pgtest.State(t, request, `select pgmq_public.delete('tasks', 1)`); got != "42501" {
		t.Errorf("delete: got state %q, want 42501", got)
	}

	service := projectdbtest.Connect(t, p, pgcluster.Service)
	pgtest.Exec(t, service, `set role service_role; select pgmq_public.send('tasks', '{}', 0)`)
	if got := pgtest.Value[int64](t, service, `select total_messages from pgmq.metrics_all()`); got != 3 {
		t.Errorf("service_role counts %d messages, want 3", got)
	}
}

// TestConcurrentConsumers reads a queue by eight consumers, of which some die in the middle: each
// message is consumed once.
func TestConcurrentConsumers(t *testing.T) {
	t.Parallel()

	const messages, consumers = 400, 8
	p := projectdbtest.New(t)
	owner := projectdbtest.Connect(t, p, pgcluster.Owner)
	pgtest.Exec(t, owner, `select pgmq.create('tasks');
		select pgmq.send_batch('tasks', array(select to_jsonb(i) from generate_series(1, 400) i))`)

	var mu sync.Mutex
	seen := map[int64]int{}
	var workers sync.WaitGroup
	for worker := range consumers {
		workers.Go(func() {
			for i := 0; ; i++ {
				failed := (worker+i)%5 == 0
				ids, err := consume(t, p, failed)
				if err != nil {
					t.Error(err)
					return
				}
				if len(ids) == 0 && !failed {
					return
				}
				if failed {
					continue
				}

				mu.Lock()
				for _, id := range ids {
					seen[id]++
				}
				mu.Unlock()
			}
		})
	}
	workers.Wait()

	// A dead consumer gives its messages back.
	rest := 0
	pgtest.Eventually(t, "the messages that are left", func() bool {
		rest += pgtest.Value[int](t, owner, `select count(*)::int from pgmq.pop('tasks', 1000)`)
		return len(seen)+rest >= messages
	})
	if len(seen)+rest != messages {
		t.Errorf("%d messages were consumed and %d are left, want %d", len(seen), rest, messages)
	}
	for id, n := range seen {
		if n != 1 {
			t.Errorf("message %d was consumed %d times", id, n)
		}
	}
}

// consume reads a few messages in a transaction, and deletes half of them. Before the commit its
// connection breaks if dies is set.
func consume(t *testing.T, p *projectdb.Project, dies bool) ([]int64, error) {
	conn, err := p.Cluster().Connect(t.Context(), p.Cluster().Config(p.UUID, pgcluster.Owner))
	if err != nil {
		return nil, err
	}
	defer conn.Close(t.Context())

	tx, err := conn.Begin(t.Context())
	if err != nil {
		return nil, err
	}

	ids, err := pg.Values[int64](t.Context(), tx, `select msg_id from pgmq.read('tasks', 600, 7)`)
	if err != nil {
		return nil, err
	}
	if dies {
		return ids, conn.PgConn().Conn().Close()
	}
	for _, id := range ids[:len(ids)/2] {
		if _, err := tx.Exec(t.Context(), `select pgmq.delete('tasks', `+strconv.FormatInt(id, 10)+`)`); err != nil {
			return nil, err
		}
	}

	return ids, tx.Commit(t.Context())
}

// TestPollsAreBounded checks that few sessions of a project poll at once.
func TestPollsAreBounded(t *testing.T) {
	t.Parallel()

	p := projectdbtest.New(t)
	pgtest.Exec(t, projectdbtest.Connect(t, p, pgcluster.Owner), `select pgmq.create('tasks')`)
	for i := range 5 {
		conn := projectdbtest.Connect(t, p, pgcluster.Owner)
		pgtest.Exec(t, conn, "begin")
		want := map[bool]string{true: "53300"}[i == 4]
		if got := pgtest.State(t, conn, `select pgmq.read_with_poll('tasks', 1, 1, 0)`); got != want {
			t.Errorf("poll %d: got state %q, want %q", i+1, got, want)
		}
	}
}

// TestOwnQueueSchema checks that a project keeps a schema pgmq that it had before the platform's.
func TestOwnQueueSchema(t *testing.T) {
	t.Parallel()

	conn, login, provision := newFormerProject(t, 48)
	pgtest.Exec(t, conn, strings.ReplaceAll(`create schema pgmq authorization $; create table pgmq.mine (id int);
		insert into pgmq.mine values (7); alter table pgmq.mine owner to $`, "$", login))

	owner := provision()
	if got := pgtest.Value[int](t, owner, `select id from pgmq.mine`); got != 7 {
		t.Errorf("got %d in the project's own table, want 7", got)
	}
	pgtest.Exec(t, owner, `create table pgmq.other (); create function pgmq.send() returns int language sql as 'select 1'`)
	if got := pgtest.Value[bool](t, owner, `select to_regnamespace('pgmq_public') is null`); !got {
		t.Error("the project got a schema pgmq_public without the platform's pgmq")
	}
}

// TestQueuesOfFormerProjects checks that a project from before the migration gets the functions.
func TestQueuesOfFormerProjects(t *testing.T) {
	t.Parallel()

	_, _, provision := newFormerProject(t, 48)
	owner := provision()
	pgtest.Exec(t, owner, `select pgmq.create('tasks'); select pgmq_public.send('tasks', '{}')`)
}
