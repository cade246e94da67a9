package broadcast_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/broadcast"
	"github.com/socle-dev/socle/internal/pgcluster"
	"github.com/socle-dev/socle/internal/pgtest"
	"github.com/socle-dev/socle/internal/projectdb"
	"github.com/socle-dev/socle/internal/projectdb/projectdbtest"
	"github.com/socle-dev/socle/internal/realtime"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// world is a project whose SQL sends messages, and the rooms of a server.
type world struct {
	*testing.T
	project *projectdb.Project
	owner   *pgx.Conn
	hub     *realtime.Hub
}

func newWorld(t *testing.T) *world {
	t.Helper()

	p := projectdbtest.New(t)
	return &world{T: t, project: p, owner: projectdbtest.Connect(t, p, pgcluster.Owner), hub: realtime.NewHub()}
}

// inbox keeps the messages to a member.
type inbox struct {
	mu  sync.Mutex
	got []*realtime.Message
}

// Deliver implements [realtime.Subscriber].
func (i *inbox) Deliver(m *realtime.Message) {
	i.mu.Lock()
	defer i.mu.Unlock()

	i.got = append(i.got, m)
}

// take returns the messages since the last call, as their event and payload without ids.
func (i *inbox) take() string {
	i.mu.Lock()
	defer i.mu.Unlock()

	var texts []string
	for _, m := range i.got {
		texts = append(texts, m.Event+" "+withoutID(m))
	}
	i.got = nil

	return strings.Join(texts, "\n")
}

func withoutID(m *realtime.Message) string { return strings.ReplaceAll(string(m.Payload), m.ID, "ID") }

func (w *world) join(topic string, isPrivate bool) *inbox {
	w.Helper()

	i := &inbox{}
	room := realtime.Address{Project: w.project.UUID, Topic: topic, Private: isPrivate}
	if _, err := w.hub.Join(room, i); err != nil {
		w.Fatal(err)
	}

	return i
}

func (w *world) exec(sql string) {
	w.Helper()
	pgtest.Exec(w, w.owner, sql)
}

func (w *world) run() {
	w.Helper()

	if err := (broadcast.Sender{Hub: w.hub}).Run(w.Context(), w.project); err != nil {
		w.Error(err)
	}
}

// TestSend: a message reaches the rooms with its topic that are as private as it is, after its
// transaction, in order and once.
func TestSend(t *testing.T) {
	t.Parallel()

	w := newWorld(t)
	public, private, other := w.join("a", false), w.join("a", true), w.join("b", true)
	w.exec(`
		select realtime.send('{"n":1}', 'first', 'a', false);
		select realtime.send('{"id":"own"}', 'second', 'a', false);
		select realtime.send('[1]', 'list', 'a');
		select realtime.send_binary('\x0001ff', 'bytes', 'a', true);
		select realtime.send(null, null, 'a');
		insert into realtime.messages (topic, extension, event, payload) values ('a', 'broadcast', 'inserted', '{}'), ('b', 'presence', 'x', '{}')`)
	if got := public.take(); got != "" {
		t.Errorf("before a run: got %s", got)
	}

	w.run()
	w.run()
	if got, want := public.take(), "first {\"n\": 1, \"id\": \"ID\"}\nsecond {\"id\": \"own\"}\ninserted {}"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got, want := private.take(), "list [1]\nbytes \x00\x01\xff\n {\"id\": \"ID\"}"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got := other.take(); got != "" {
		t.Errorf("another topic: got %s", got)
	}

	w.exec(`begin; select realtime.send('{}', 'undone', 'a'); rollback; select realtime.send('{}', 'gone', 'a'); delete from realtime.messages`)
	w.run()
	if got := private.take(); got != "" {
		t.Errorf("what was rolled back or deleted: got %s", got)
	}
}

// TestBroadcastChanges: a trigger for each row sends the change, as the role that makes it if the
// policies allow that, and a write goes on without a message otherwise.
func TestBroadcastChanges(t *testing.T) {
	t.Parallel()

	w := newWorld(t)
	w.exec(`
		create table public.notes (id int primary key, body text);
		alter table public.notes disable row level security;
		grant all on public.notes to anon, authenticated;
		create function public.tell() returns trigger language plpgsql security definer as $$ begin
			perform realtime.broadcast_changes('notes', tg_op, tg_op, tg_table_name, tg_table_schema, new, old, tg_level); return null; end $$;
		create trigger tell after insert or update or delete on public.notes for each row execute function public.tell();
		create table public.plain (id int);
		alter table public.plain disable row level security;
		grant all on public.plain to anon, authenticated;
		create function public.tell_as_caller() returns trigger language plpgsql as $$ begin
			perform realtime.send(to_jsonb(new), 'insert', 'plain'); return null; end $$;
		create trigger tell after insert on public.plain for each row execute function public.tell_as_caller();
		create policy send on realtime.messages for insert to authenticated with check (realtime.topic() = 'plain')`)
	notes, plain := w.join("notes", true), w.join("plain", true)

	request := projectdbtest.Connect(t, w.project, pgcluster.Request)
	pgtest.Exec(t, request, `set role anon; insert into public.notes values (1, 'a'); update public.notes set body = 'b'; delete from public.notes;
		insert into public.plain values (1); set role authenticated; insert into public.plain values (2)`)
	w.run()

	const change = `%[1]s {"id": "ID", "table": "notes", "record": %[2]s, "schema": "public", "operation": "%[1]s", "old_record": %[3]s}`
	want := fmt.Sprintf(change, "INSERT", `{"id": 1, "body": "a"}`, "null") + "\n" +
		fmt.Sprintf(change, "UPDATE", `{"id": 1, "body": "b"}`, `{"id": 1, "body": "a"}`) + "\n" +
		fmt.Sprintf(change, "DELETE", "null", `{"id": 1, "body": "b"}`)
	if got := notes.take(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got := plain.take(); got != `insert {"id": 2}` {
		t.Errorf("got %s, want the message of authenticated alone", got)
	}

	for sql, want := range map[string]string{
		`select realtime.broadcast_changes('a', 'b', 'INSERT', 't', 's', row(1), null, 'STATEMENT')`:                 "0A000",
		`select realtime.send(to_jsonb(repeat('x', 300000)), 'e', 't')`:                                              "",
		`insert into realtime.messages (topic, extension, payload) values ('a', 'b', to_jsonb(repeat('x', 300000)))`: "54000",
		`insert into realtime.messages (topic, extension) values (repeat('x', 247), 'b')`:                            "22023",
		`insert into realtime.messages (topic, extension) values ('', 'b')`:                                          "22023",
		`insert into realtime.messages (topic, extension, event) values ('a', 'b', repeat('x', 256))`:                "22023",
		`insert into realtime.messages (topic, extension) select 'a', 'broadcast' from generate_series(1, 100001)`:   "54000",
	} {
		if got := pgtest.State(t, w.owner, sql); got != want {
			t.Errorf("%s: got state %q, want %q", sql, got, want)
		}
	}
	if pgtest.Value[bool](t, w.owner, `select exists (select from realtime.messages where octet_length(payload::text) > 262144)`) {
		t.Error("a message that is too large is kept")
	}
	if got := pgtest.State(t, request, `set role authenticated; select * from socle.unsent_messages`); got != "42501" {
		t.Errorf("the queue: got state %s, want 42501", got)
	}
}

// TestForgedMessage: an owner who changes a row to what fits no frame sends nothing, and blocks
// nothing.
func TestForgedMessage(t *testing.T) {
	t.Parallel()

	w := newWorld(t)
	room := w.join("a", false)
	w.exec(`
		select realtime.send('{}', 'long', 'a', false);
		update realtime.messages set event = repeat('x', 300);
		select realtime.send('{"id":1}', 'next', 'a', false)`)
	w.run()
	if got, want := room.take(), `next {"id": 1}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestDeliveriesAreShared: messages beyond the deliveries of the project wait for the next run, and
// are given up after a while, so that others follow.
func TestDeliveriesAreShared(t *testing.T) {
	t.Parallel()

	w := newWorld(t)
	for range 1000 {
		w.join("large", false)
	}
	last := w.join("large", false)
	w.exec(`select realtime.send(to_jsonb(i), 'e', 'large', false) from generate_series(1, 500) i`)
	w.run()
	waiting := pgtest.Value[int](t, w.project.Trusted(), `select count(*)::int from socle.unsent_messages`)
	if got := len(last.got); got == 0 || got+waiting != 500 || waiting == 0 {
		t.Errorf("got %d messages, and %d wait", got, waiting)
	}

	if _, err := w.project.Trusted().Exec(t.Context(), `
		with m as (update realtime.messages set inserted_at = inserted_at - interval '1 minute' returning id, inserted_at)
		update socle.unsent_messages u set inserted_at = m.inserted_at from m where m.id = u.id`); err != nil {
		t.Fatal(err)
	}
	w.run()
	if pgtest.Value[bool](t, w.project.Trusted(), `select exists (select from socle.unsent_messages)`) {
		t.Error("old messages still wait")
	}
}

// TestTwoServers: two servers that deliver at once deliver each message once, in order.
func TestTwoServers(t *testing.T) {
	t.Parallel()

	w := newWorld(t)
	room := w.join("a", false)
	w.exec(`select realtime.send(to_jsonb(i), 'e', 'a', false) from generate_series(1, 1000) i`)

	var servers sync.WaitGroup
	for range 2 {
		servers.Go(func() {
			for pgtest.Value[bool](t, w.project.Trusted(), `select exists (select from socle.unsent_messages)`) {
				w.run()
			}
		})
	}
	servers.Wait()

	for i, m := range room.got {
		if want := fmt.Sprint(i + 1); string(m.Payload) != want {
			t.Fatalf("got %s as message %s", m.Payload, want)
		}
	}
	if len(room.got) != 1000 {
		t.Errorf("got %d messages, want 1000", len(room.got))
	}
}

// TestReplay: a private channel replays its last messages after a time, oldest first.
func TestReplay(t *testing.T) {
	t.Parallel()

	w := newWorld(t)
	archive := broadcast.Archive{Project: w.project}
	replay := func(topic string, since time.Time, n int) []string {
		t.Helper()

		messages, err := archive.Replay(t.Context(), topic, since, n)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, m := range messages {
			got = append(got, m.Event+" "+string(m.Payload))
		}

		return got
	}

	start := pgtest.Value[time.Time](t, w.owner, `select clock_timestamp()`)
	w.exec(`
		select realtime.send(to_jsonb(i), 'e', 'a') from generate_series(1, 30) i;
		select realtime.send('0', 'public', 'a', false);
		select realtime.send('0', 'elsewhere', 'b');
		insert into realtime.messages (topic, extension, private) values ('a', 'presence', true)`)
	middle := pgtest.Value[time.Time](t, w.owner, `select clock_timestamp()`)
	w.exec(`select realtime.send('31', 'e', 'a'), realtime.send_binary('\x01', 'b', 'a')`)

	if got, want := replay("a", start, 3), []string{"e 30", "e 31", "b \x01"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := replay("a", middle, 25), []string{"e 31", "b \x01"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := replay("a", start, 1000); len(got) != broadcast.MaxReplay || got[0] != "e 8" {
		t.Errorf("got %q, want %d messages from 8 on", got, broadcast.MaxReplay)
	}
	if got := replay("x", start, 25); got != nil {
		t.Errorf("another topic: got %q", got)
	}
}

// TestMessagesAreBounded: the sweep removes messages of more than three days, and the oldest of too
// many.
func TestMessagesAreBounded(t *testing.T) {
	t.Parallel()

	w := newWorld(t)
	trusted := projectdbtest.Connect(t, w.project, pgcluster.Trusted)
	pgtest.Exec(t, trusted, `set session_replication_role = replica;
		insert into realtime.messages (topic, extension, payload, inserted_at)
		select 'a', 'broadcast', to_jsonb(i), now() at time zone 'UTC' - interval '1 day' + i * interval '1 second' from generate_series(1, 50100) i
		union all select 'a', 'broadcast', '0', now() at time zone 'UTC' - interval '73 hours'`)
	if err := broadcast.Subject().Sweep(t.Context(), w.project); err != nil {
		t.Fatal(err)
	}
	if got, want := pgtest.Value[string](t, trusted, `select min(payload::int) || '..' || max(payload::int) from realtime.messages`), "101..50100"; got != want {
		t.Errorf("got the messages %s, want %s", got, want)
	}
}
