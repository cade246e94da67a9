package event_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/actor"
	"github.com/socle-dev/socle/internal/event"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/pgcluster"
	"github.com/socle-dev/socle/internal/pgtest"
	"github.com/socle-dev/socle/internal/projectdb"
	"github.com/socle-dev/socle/internal/projectdb/projectdbtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// world is a project with tables that clients follow.
type world struct {
	*testing.T
	project *projectdb.Project
	owner   *pgx.Conn
	logs    *event.Logs
}

var (
	anon = actor.Actor{Role: "anon"}
	ann  = actor.Actor{Role: "authenticated", Subject: "ann", Claims: []byte(`{"role":"authenticated","sub":"ann"}`)}
	bob  = actor.Actor{Role: "authenticated", Subject: "bob", Claims: []byte(`{"role":"authenticated","sub":"bob"}`)}
)

func newWorld(t *testing.T) *world {
	t.Helper()

	p := projectdbtest.New(t)
	w := &world{T: t, project: p, owner: projectdbtest.Connect(t, p, pgcluster.Owner),
		logs: event.NewLogs(slog.Default())}
	t.Cleanup(w.logs.Close)

	w.exec(`
		set search_path = public;
		create table notes (id int primary key, owner text, body text, secret text);
		create policy own on notes to authenticated using (owner = current_setting('request.jwt.claims')::json ->> 'sub');
		create policy public on notes for select to anon using (notes.owner is null);
		grant select (id, owner, body), insert, update, delete on notes to anon, authenticated;
		grant all on notes to service_role;
		create table prices (id bigint primary key, price numeric, at timestamptz, tags text[]);
		alter table prices disable row level security;
		grant all on prices to anon, authenticated, service_role;
		create table element (value int primary key, n int, deleted boolean, "row" text);
		create policy odd on element for select to anon using (n = value and not deleted and "row" <> '' and element.value > 0);
		grant select on element to anon;
		create table hidden (id int primary key);
		alter publication supabase_realtime add table notes, prices, element`)

	return w
}

func (w *world) exec(sql string) {
	w.Helper()
	pgtest.Exec(w, w.owner, sql)
}

// trusted executes a statement on the platform's login.
func (w *world) trusted(sql string) {
	w.Helper()

	if _, err := pg.Exec(w.Context(), w.project.Trusted(), sql); err != nil {
		w.Fatal(err)
	}
}

// removeEvents removes changes beyond a number of bytes, or older than an interval. A reader of the
// log can have it locked for a moment.
func (w *world) removeEvents(limit int, kept string) {
	w.Helper()

	pgtest.Eventually(w, "the log is free", func() bool {
		_, err := pg.Exec(w.Context(), w.project.Trusted(), `select socle.remove_events(@limit, @kept::text::interval)`,
			pgx.StrictNamedArgs{"limit": limit, "kept": kept})
		if err != nil && pg.State(err) != "55P03" {
			w.Fatal(err)
		}

		return err == nil
	})
}

func (w *world) follow(caller actor.Actor, cursor string, bindings ...event.Binding) *event.Follower {
	w.Helper()

	f, err := w.logs.Follow(w.Context(), w.project, caller, bindings, cursor)
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(f.Close)

	return f
}

// next returns the next n changes as texts.
func next(w *world, f *event.Follower, n int) []string {
	w.Helper()

	ctx, cancel := context.WithTimeout(w.Context(), pgtest.Patience)
	defer cancel()

	var all []string
	for len(all) < n {
		changes, err := f.Next(ctx)
		if err != nil {
			w.Fatalf("after %d of %d changes: %v", len(all), n, err)
		}
		for _, c := range changes {
			all = append(all, fmt.Sprintf("%v %s %s %s %s", c.Bindings, c.Type, c.Table, c.Record, c.Old))
		}
	}

	return all
}

func wantNext(w *world, f *event.Follower, want ...string) {
	w.Helper()

	if got := next(w, f, len(want)); !slices.Equal(got, want) {
		w.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestFollow: each follower gets the changes that its bindings match and its policies show, with
// the columns that it may select, once and in order.
func TestFollow(t *testing.T) {
	t.Parallel()

	w := newWorld(t)
	all := w.follow(anon, "", event.Binding{Event: "*", Schema: "public", Table: "prices"},
		event.Binding{Event: "UPDATE", Schema: "public", Table: "prices", Filter: "price=gt.10,id=in.(1,2)"},
		event.Binding{Event: "TRUNCATE", Schema: "public"})
	anns := w.follow(ann, "", event.Binding{Event: "*", Schema: "public", Table: "notes"})
	bobs := w.follow(bob, "", event.Binding{Event: "*", Schema: "public", Table: "notes", Filter: "body=neq.two",
		Select: "body"})
	strangers := w.follow(anon, "", event.Binding{Event: "INSERT", Schema: "public"})
	service := w.follow(actor.Service(), "", event.Binding{Event: "*", Schema: "public", Table: "notes",
		Filter: "secret=like.%x%"})

	w.exec(`insert into prices values (1, 1.50, '2026-01-02 03:04:05+00', '{a,"b,c"}'), (2, 'NaN', 'infinity', null)`)
	wantNext(w, all,
		`[0] INSERT prices {"id":1,"price":1.50,"at":"2026-01-02T03:04:05+00:00","tags":["a","b,c"]} `,
		`[0] INSERT prices {"id":2,"price":"NaN","at":"infinity","tags":null} `)

	w.exec(`update prices set price = 11.0, id = id + 2 where id = 1; update prices set price = 12 where id = 2;
		delete from prices where id = 3; truncate prices`)
	wantNext(w, all,
		`[0] UPDATE prices {"id":3,"price":11.0,"at":"2026-01-02T03:04:05+00:00","tags":["a","b,c"]} {"id":1}`,
		`[0 1] UPDATE prices {"id":2,"price":12,"at":"infinity","tags":null} {"id":2}`,
		`[0] DELETE prices  {"id":3}`,
		`[2] TRUNCATE prices  `)

	w.exec(`insert into notes values (1, 'ann', 'one', 'x'), (2, 'bob', 'two', 'y'), (3, 'bob', 'three', 'xx'), (4, null, 'four', 'z')`)
	wantNext(w, anns, `[0] INSERT notes {"id":1,"owner":"ann","body":"one"} `)
	wantNext(w, bobs, `[0] INSERT notes {"body":"three"} `)
	wantNext(w, strangers, // a binding of all tables
		`[0] INSERT prices {"id":1,"price":1.50,"at":"2026-01-02T03:04:05+00:00","tags":["a","b,c"]} `,
		`[0] INSERT prices {"id":2,"price":"NaN","at":"infinity","tags":null} `,
		`[0] INSERT notes {"id":4,"owner":null,"body":"four"} `)
	wantNext(w, service, `[0] INSERT notes {"id":1,"owner":"ann","body":"one","secret":"x"} `,
		`[0] INSERT notes {"id":3,"owner":"bob","body":"three","secret":"xx"} `)

	elements := w.follow(anon, "", event.Binding{Event: "INSERT", Schema: "public", Table: "element",
		Filter: "row=like.x%", Select: "n"})
	w.exec(`insert into element values (1, 1, false, 'x'), (2, 1, false, 'x'), (3, 3, true, 'x'), (4, 4, false, 'y'), (5, 5, false, 'xy')`)
	wantNext(w, elements, `[0] INSERT element {"n":1} `, `[0] INSERT element {"n":5} `)

	// Policies decide on the row as it was: it may be gone. A deleted key is no secret.
	w.exec(`alter table notes replica identity full;
		begin; update notes set body = 'mine' where id = 1; update notes set owner = 'bob' where id = 1; delete from notes; commit`)
	wantNext(w, anns, `[0] UPDATE notes {"id":1,"owner":"ann","body":"mine"} {"id":1}`,
		`[0] DELETE notes  {"id":2}`, `[0] DELETE notes  {"id":3}`,
		`[0] DELETE notes  {"id":4}`, `[0] DELETE notes  {"id":1}`)
	wantNext(w, service, `[0] UPDATE notes {"id":1,"owner":"ann","body":"mine","secret":"x"} {"id":1,"owner":"ann","body":"one","secret":"x"}`,
		`[0] UPDATE notes {"id":1,"owner":"bob","body":"mine","secret":"x"} {"id":1,"owner":"ann","body":"mine","secret":"x"}`,
		`[0] DELETE notes  {"id":3,"owner":"bob","body":"three","secret":"xx"}`,
		`[0] DELETE notes  {"id":1,"owner":"bob","body":"mine","secret":"x"}`)
}

// TestFollowThroughDDL: a follower goes on when the catalog changes, with what it may see then.
func TestFollowThroughDDL(t *testing.T) {
	t.Parallel()

	w := newWorld(t)
	w.exec(`create table parts (id int, kind text, primary key (id, kind)) partition by list (kind);
		create table parts_a partition of parts for values in ('a');
		alter table parts disable row level security; grant select on parts to anon;
		alter publication supabase_realtime add table parts`)
	f := w.follow(anon, "", event.Binding{Event: "*", Schema: "public", Table: "parts"})
	w.exec(`insert into parts values (1, 'a'); insert into parts_a values (2, 'a'); update parts set id = 3 where id = 1`)
	wantNext(w, f, `[0] INSERT parts {"id":1,"kind":"a"} `, `[0] INSERT parts {"id":2,"kind":"a"} `,
		`[0] UPDATE parts {"id":3,"kind":"a"} {"id":1,"kind":"a"}`)

	w.exec(`create table parts_b partition of parts for values in ('b'); alter table parts rename id to number;
		alter table parts add column more jsonb`)
	pgtest.Eventually(t, "the new partition is captured", func() bool {
		return pgtest.Value[bool](t, w.project.Trusted(), `
			select exists (select from pg_trigger where tgrelid = to_regclass('public.parts_b') and tgname = 'socle_capture_insert')`)
	})
	w.exec(`insert into parts_b values (4, 'b', '{"a": [1, 2.50]}')`)
	wantNext(w, f, `[0] INSERT parts {"number":4,"kind":"b","more":{"a": [1, 2.50]}} `)

	w.exec(`alter table parts enable row level security; insert into parts values (5, 'a');
		create policy late on parts for select to anon using (number > 5); insert into parts values (6, 'a')`)
	wantNext(w, f, `[0] INSERT parts {"number":6,"kind":"a","more":null} `)

	w.exec(`alter publication supabase_realtime drop table parts`)
	if _, err := f.Next(t.Context()); !fault.Is(err, fault.Invalid) {
		t.Errorf("after the table has left the publication: got %v, want Invalid", err)
	}
}

// TestFollowRefuses: a binding that names nothing, or what the caller may not see, is refused in
// words.
func TestFollowRefuses(t *testing.T) {
	t.Parallel()

	w := newWorld(t)
	for name, b := range map[string]event.Binding{
		"no table":             {Event: "*", Schema: "public", Table: "absent"},
		"not published":        {Event: "*", Schema: "public", Table: "hidden"},
		"no column":            {Event: "*", Schema: "public", Table: "notes", Filter: "absent=eq.1"},
		"hidden column":        {Event: "*", Schema: "public", Table: "notes", Filter: "secret=eq.1"},
		"hidden selection":     {Event: "*", Schema: "public", Table: "notes", Select: "id,secret"},
		"value of other type":  {Event: "*", Schema: "public", Table: "notes", Filter: "id=eq.one"},
		"unknown operator":     {Event: "*", Schema: "public", Table: "notes", Filter: "id=is.one"},
		"operator of no type":  {Event: "*", Schema: "public", Table: "prices", Filter: "tags=is.true"},
		"SQL instead of value": {Event: "*", Schema: "public", Table: "notes", Filter: "id=eq.1) or (1=1"},
	} {
		if _, err := w.logs.Follow(t.Context(), w.project, ann, []event.Binding{b}, ""); !fault.Is(err, fault.Invalid) {
			t.Errorf("%s: got %v, want Invalid", name, err)
		}
	}
}

// TestCaptureIsInvisible: the triggers that capture changes are in no list of the owner's, and the
// owner's statements on triggers leave them alone. What is not followed has none.
func TestCaptureIsInvisible(t *testing.T) {
	t.Parallel()

	w := newWorld(t)
	count := func() int64 {
		return pgtest.Value[int64](t, w.project.Trusted(), `select count(*) from pg_trigger where tgname like 'socle\_capture\_%'`)
	}
	if count() != 0 {
		t.Error("a table that nobody follows has triggers")
	}

	f := w.follow(anon, "", event.Binding{Event: "*", Schema: "public", Table: "prices"})
	if got := count(); got != 4 {
		t.Errorf("got %d triggers, want 4", got)
	}
	if got := pgtest.Value[int64](t, w.owner, `select count(*) from pg_trigger where not tgisinternal and tgrelid = 'prices'::regclass`); got > 0 {
		t.Errorf("the owner sees %d triggers", got)
	}

	w.exec(`alter table prices disable trigger user; alter table prices rename to costs; alter table costs rename to prices;
		insert into prices (id) values (1)`)
	wantNext(w, f, `[0] INSERT prices {"id":1,"price":null,"at":null,"tags":null} `)

	for _, sql := range []string{
		`insert into socle.events (relation, operation) values (1, 'i')`, `select * from socle.events`,
		`select socle.capture(1)`, `select socle.capture_insert()`, `drop function socle.capture_insert()`,
		`create trigger mine after insert on hidden referencing new table as new_rows for each statement execute function socle.capture_insert('1')`,
	} {
		if pgtest.State(t, w.owner, sql) != "42501" {
			t.Errorf("%s: not refused", sql)
		}
	}

	// The captures run as the login for requests, which can't change them.
	request := projectdbtest.Connect(t, w.project, pgcluster.Request)
	for _, sql := range []string{
		`drop function socle.capture_insert() cascade`, `alter function socle.capture_insert() security invoker`,
		`alter function socle.capture_insert() owner to anon`, `alter function socle.capture_insert() rename to x`,
		`grant execute on function socle.capture_insert() to public`, `delete from socle.events`,
	} {
		if state := pgtest.State(t, request, sql); state != "42501" {
			t.Errorf("%s: got %q, want a refusal", sql, state)
		}
	}
}

// TestResume: a follower continues after a cursor without a gap and without a repetition, and is
// told when that is impossible.
func TestResume(t *testing.T) {
	t.Parallel()

	w := newWorld(t)
	binding := event.Binding{Event: "*", Schema: "public", Table: "prices", Select: "id"}
	f := w.follow(anon, "", binding)
	first := f.Cursor()

	w.exec(`insert into prices (id) select generate_series(1, 1200)`)
	w.exec(`insert into prices (id) select generate_series(1201, 1205)`)

	var middle string
	seen := 0
	for seen < 700 {
		changes, err := f.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		seen += len(changes)
		if middle = changes[len(changes)-1].Cursor; middle != f.Cursor() && seen < 1200 {
			t.Errorf("after %d changes the follower's cursor is not the last change's", seen)
		}
	}
	f.Close()

	for i, resumed := range []struct {
		cursor string
		from   int
	}{{first, 1}, {middle, seen + 1}} {
		last := 1205 + i
		var want []string
		for id := resumed.from; id <= last; id++ {
			want = append(want, fmt.Sprintf(`[0] INSERT prices {"id":%d} `, id))
		}

		again := w.follow(anon, resumed.cursor, binding)
		wantNext(w, again, want...)
		w.exec(fmt.Sprintf(`insert into prices (id) values (%d)`, last+1))
		wantNext(w, again, fmt.Sprintf(`[0] INSERT prices {"id":%d} `, last+1))
		again.Close()
	}

	refused := func(b event.Binding, cursor string) error {
		_, err := w.logs.Follow(t.Context(), w.project, anon, []event.Binding{b}, cursor)
		return err
	}
	if err := refused(binding, "garbage"); !fault.Is(err, fault.Invalid) {
		t.Errorf("garbage: got %v, want Invalid", err)
	}

	notes := event.Binding{Event: "*", Schema: "public", Table: "notes"}
	if err := refused(notes, first); err != event.ErrResync {
		t.Errorf("a table that was not captured: got %v, want ErrResync", err)
	}

	w.removeEvents(0, "1 day")
	if err := refused(binding, first); err != event.ErrResync {
		t.Errorf("after the removal of events: got %v, want ErrResync", err)
	}
}

// TestNothingLost: under concurrent writers with savepoints and rollbacks, a follower gets each
// committed row once, and so does one that resumes again and again.
func TestNothingLost(t *testing.T) {
	t.Parallel()

	w := newWorld(t)
	binding := event.Binding{Event: "INSERT", Schema: "public", Table: "prices", Select: "id"}
	steady, restless := w.follow(anon, "", binding), w.follow(anon, "", binding)

	const writers, rounds = 4, 25
	var mu sync.Mutex
	committed := map[int]bool{}
	var all sync.WaitGroup
	for i := range writers {
		conn := projectdbtest.Connect(t, w.project, pgcluster.Owner)
		pgtest.Exec(t, conn, `set search_path = public`)
		all.Go(func() {
			for n := range rounds {
				id := (i*rounds + n) * 10
				end := "commit"
				if n%5 == 4 {
					end = "rollback"
				}
				pgtest.Exec(t, conn, fmt.Sprintf(`begin; insert into prices (id) values (%d); savepoint s;
					insert into prices (id) values (%d); rollback to s; insert into prices (id) values (%d), (%d); %s`,
					id, id+1, id+2, id+3, end))
				if end == "commit" {
					mu.Lock()
					committed[id], committed[id+2], committed[id+3] = true, true, true
					mu.Unlock()
				}
			}
		})
	}

	ctx, cancel := context.WithTimeout(t.Context(), pgtest.Patience)
	defer cancel()

	collect := func(f *event.Follower, resume bool) map[int]int {
		seen := map[int]int{}
		for len(seen) < writers*rounds*3*4/5 {
			changes, err := f.Next(ctx)
			if err != nil {
				t.Error(err)
				return seen
			}
			for i, c := range changes {
				var row struct{ ID int }
				if err := json.Unmarshal(c.Record, &row); err != nil {
					t.Error(err)
				}
				seen[row.ID]++
				if resume && i == len(changes)/2 { // the rest comes again
					f.Close()
					f, err = w.logs.Follow(ctx, w.project, anon, []event.Binding{binding}, c.Cursor)
					if err != nil {
						t.Error(err)
						return seen
					}
					break
				}
			}
		}
		f.Close()

		return seen
	}

	var seen [2]map[int]int
	all.Go(func() { seen[0] = collect(steady, false) })
	all.Go(func() { seen[1] = collect(restless, true) })
	all.Wait()

	for i, s := range seen {
		for id := range committed {
			if s[id] != 1 {
				t.Errorf("follower %d: got row %d %d times", i, id, s[id])
			}
		}
		if len(s) != len(committed) {
			t.Errorf("follower %d: got %d rows, want %d", i, len(s), len(committed))
		}
	}
}

// TestChannels: the policies on realtime.messages decide who receives and who sends.
func TestChannels(t *testing.T) {
	t.Parallel()

	w := newWorld(t)
	channels := event.Channels{Project: w.project}
	allowed := func(caller actor.Actor, topic, extension string) string {
		receives, err := channels.MayReceive(t.Context(), caller, topic, extension)
		sends, err2 := channels.MaySend(t.Context(), caller, topic, extension)
		if err != nil || err2 != nil {
			t.Error(err, err2)
		}

		return fmt.Sprint(receives, sends)
	}

	if got := allowed(ann, "room", "broadcast"); got != "false false" {
		t.Errorf("without policies: got %s", got)
	}

	w.exec(`
		create policy receive on realtime.messages for select to authenticated
			using (realtime.topic() = 'room:' || (current_setting('request.jwt.claims')::json ->> 'sub'));
		create policy send on realtime.messages for insert to authenticated with check (messages.extension = 'broadcast' and topic like 'room:%');
		create policy never on realtime.messages as restrictive for insert to public with check (realtime.topic() <> 'room:closed')`)
	for call, want := range map[string]string{
		allowed(ann, "room:ann", "broadcast"):            "true true",
		allowed(ann, "room:ann", "presence") + " ":       "true false ",
		allowed(bob, "room:ann", "broadcast") + "  ":     "false true  ",
		allowed(bob, "room:closed", "broadcast") + " 4":  "false false 4",
		allowed(anon, "room:ann", "broadcast") + " 5":    "false false 5",
		allowed(actor.Service(), "x", "presence") + " 6": "true true 6",
	} {
		if call != want {
			t.Errorf("got %s, want %s", call, want)
		}
	}
}

// TestSweep: captures end when nobody has followed a table for a while.
func TestSweep(t *testing.T) {
	t.Parallel()

	w := newWorld(t)
	f := w.follow(anon, "", event.Binding{Event: "*", Schema: "public", Table: "prices"})
	f.Close()

	if err := event.Subject().Sweep(t.Context(), w.project); err != nil {
		t.Fatal(err)
	}
	const captured = `select count(*) from pg_trigger where tgname like 'socle\_capture\_%'`
	if got := pgtest.Value[int64](t, w.project.Trusted(), captured); got != 4 {
		t.Errorf("after a sweep: got %d triggers, want 4", got)
	}

	pgtest.Value[string](t, w.project.Trusted(), `
		with c as (update socle.captures set followed_at = now() - interval '2 hours' returning 1) select count(*)::text from c`)
	if err := event.Subject().Sweep(t.Context(), w.project); err != nil {
		t.Fatal(err)
	}
	if got := pgtest.Value[int64](t, w.project.Trusted(), captured); got != 0 {
		t.Errorf("two hours later: got %d triggers", got)
	}
}
