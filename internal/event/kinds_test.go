package event_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/socle-dev/socle/internal/actor"
	"github.com/socle-dev/socle/internal/event"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pgcluster"
	"github.com/socle-dev/socle/internal/pgtest"
	"github.com/socle-dev/socle/internal/projectdb/projectdbtest"
)

func (w *world) followTables(tables ...string) *event.Follower {
	w.Helper()

	var bindings []event.Binding
	for _, table := range tables {
		bindings = append(bindings, event.Binding{Event: "*", Schema: "public", Table: table},
			event.Binding{Event: "TRUNCATE", Schema: "public", Table: table})
	}

	return w.follow(anon, "", bindings...)
}

// TestKindsOfStatements: changes are told of by whatever statement they come.
func TestKindsOfStatements(t *testing.T) {
	t.Parallel()

	w := newWorld(t)
	w.exec(`create table parents (id int primary key);
		create table children (id int primary key, parent int references parents on delete cascade on update cascade,
			twice int generated always as (id * 2) stored);
		create table moved (id int, kind text, primary key (id, kind)) partition by list (kind);
		create table moved_a partition of moved for values in ('a');
		create table moved_b partition of moved for values in ('b');
		alter table parents disable row level security; alter table children disable row level security;
		alter table moved disable row level security;
		grant select on parents, children, moved to anon;
		alter publication supabase_realtime add table parents, children, moved`)
	f := w.followTables("parents", "children", "moved")

	_, err := w.owner.PgConn().CopyFrom(t.Context(), strings.NewReader("1\n2\n"), "copy parents from stdin")
	if err != nil {
		t.Fatal(err)
	}
	wantNext(w, f, `[0] INSERT parents {"id":1} `, `[0] INSERT parents {"id":2} `)

	w.exec(`insert into children values (10, 1), (20, 2)`)
	wantNext(w, f, `[2] INSERT children {"id":10,"parent":1,"twice":20} `, `[2] INSERT children {"id":20,"parent":2,"twice":40} `)

	w.exec(`update parents set id = 3 where id = 1`) // cascades
	wantNext(w, f, `[0] UPDATE parents {"id":3} {"id":1}`, `[2] UPDATE children {"id":10,"parent":3,"twice":20} {"id":10}`)

	w.exec(`delete from parents where id = 3`)
	wantNext(w, f, `[0] DELETE parents  {"id":3}`, `[2] DELETE children  {"id":10}`)

	w.exec(`insert into children values (20, null), (30, 2) on conflict (id) do update set parent = excluded.parent`)
	wantNext(w, f, `[2] UPDATE children {"id":20,"parent":null,"twice":40} {"id":20}`,
		`[2] INSERT children {"id":30,"parent":2,"twice":60} `)

	w.exec(`merge into children c using (values (20), (40)) v (id) on c.id = v.id when matched then delete
		when not matched then insert (id) values (v.id)`)
	wantNext(w, f, `[2] DELETE children  {"id":20}`, `[2] INSERT children {"id":40,"parent":null,"twice":80} `)

	w.exec(`insert into moved values (1, 'a'), (2, 'a'); update moved set kind = 'b' where id = 1`)
	wantNext(w, f, `[4] INSERT moved {"id":1,"kind":"a"} `, `[4] INSERT moved {"id":2,"kind":"a"} `,
		`[4] UPDATE moved {"id":1,"kind":"b"} {"id":1,"kind":"a"}`)

	w.exec(`truncate parents cascade`)
	got := strings.Join(next(w, f, 2), "")
	if !strings.Contains(got, "TRUNCATE parents") || !strings.Contains(got, "TRUNCATE children") {
		t.Errorf("got %q", got)
	}
}

// TestLargeChanges: a row beyond a megabyte comes without its long members, and 100,000 rows of one
// statement come all, once and in order.
func TestLargeChanges(t *testing.T) {
	t.Parallel()

	w := newWorld(t)
	w.exec(`create table large (id int primary key, short text, long text);
		alter table large disable row level security; grant select on large to anon;
		alter publication supabase_realtime add table large`)
	f := w.follow(anon, "", event.Binding{Event: "*", Schema: "public", Table: "large"})

	w.exec(`insert into large values (0, 'x', repeat('y', 1 << 20))`)
	changes, err := f.Next(t.Context())
	if err != nil || len(changes) != 1 || !changes[0].Oversized || strings.Contains(string(changes[0].Record), "yyy") ||
		!strings.Contains(string(changes[0].Record), `"short" : "x"`) {
		t.Fatalf("a row of a megabyte: got %d changes, %v: %.200s", len(changes), err, changes[0].Record)
	}

	// A row that package json can't read, and PostgreSQL can.
	w.exec(`alter table large add column nested json;
		insert into large values (-1, 'x', null, (repeat('[', 12000) || repeat(']', 12000))::json)`)
	changes, err = f.Next(t.Context())
	if err != nil || len(changes) != 1 || !changes[0].Oversized ||
		string(changes[0].Record) != `{"id":-1,"short":"x","long":null}` {
		t.Fatalf("a row of 12,000 levels: got %d changes, %v: %.200s", len(changes), err, changes[0].Record)
	}

	const rows = 100_000
	w.exec(fmt.Sprintf(`insert into large select generate_series(1, %d)`, rows))
	ctx, cancel := context.WithTimeout(t.Context(), pgtest.Patience)
	defer cancel()

	for n := 0; n < rows; {
		changes, err := f.Next(ctx)
		if err != nil {
			t.Fatalf("after %d rows: %v", n, err)
		}
		for _, c := range changes {
			n++
			var row struct{ ID int }
			if err := json.Unmarshal(c.Record, &row); err != nil || row.ID != n {
				t.Fatalf("got %s, %v, want row %d", c.Record, err, n)
			}
		}
	}
}

// TestLongTransactions: an open transaction delays no other one's changes, and its own come with
// its commit.
func TestLongTransactions(t *testing.T) {
	t.Parallel()

	w := newWorld(t)
	f := w.follow(anon, "", event.Binding{Event: "INSERT", Schema: "public", Table: "prices", Select: "id"})
	long := projectdbtest.Connect(t, w.project, pgcluster.Owner)
	pgtest.Exec(t, long, `begin; insert into public.prices (id) values (1)`)

	w.exec(`insert into prices (id) values (2)`)
	wantNext(w, f, `[0] INSERT prices {"id":2} `)
	at := f.Cursor()

	pgtest.Exec(t, long, `commit`)
	wantNext(w, f, `[0] INSERT prices {"id":1} `)
	wantNext(w, w.follow(anon, at, event.Binding{Event: "INSERT", Schema: "public", Table: "prices", Select: "id"}),
		`[0] INSERT prices {"id":1} `)
}

// TestRenames: a follower loses a column that is dropped, and ends when its table or the column of
// its filter has gone.
func TestRenames(t *testing.T) {
	t.Parallel()

	w := newWorld(t)
	whole := w.follow(anon, "", event.Binding{Event: "INSERT", Schema: "public", Table: "prices"})
	filtered := w.follow(anon, "",
		event.Binding{Event: "INSERT", Schema: "public", Table: "prices", Filter: "price=gt.1"})

	w.exec(`alter table prices drop column tags; insert into prices (id, price) values (1, 2)`)
	for _, f := range []*event.Follower{whole, filtered} {
		wantNext(w, f, `[0] INSERT prices {"id":1,"price":2,"at":null} `)
	}

	w.exec(`alter table prices rename price to cost`)
	if _, err := filtered.Next(t.Context()); !fault.Is(err, fault.Invalid) {
		t.Errorf("without the filter's column: got %v, want Invalid", err)
	}
	w.exec(`insert into prices (id) values (2)`)
	wantNext(w, whole, `[0] INSERT prices {"id":2,"cost":null,"at":null} `)

	w.exec(`alter table prices rename to costs`)
	if _, err := whole.Next(t.Context()); !fault.Is(err, fault.Invalid) {
		t.Errorf("without the table: got %v, want Invalid", err)
	}
}

// TestClockBack: a change that a clock ahead has written is neither lost nor told twice when the
// clock is set back, nor is it removed early. It goes when the log is too large, of which cursors
// before it are told.
func TestClockBack(t *testing.T) {
	t.Parallel()

	w := newWorld(t)
	binding := event.Binding{Event: "INSERT", Schema: "public", Table: "prices", Select: "id"}
	f := w.follow(anon, "", binding)
	before := f.Cursor()
	w.exec(`insert into prices (id) values (1)`)
	wantNext(w, f, `[0] INSERT prices {"id":1} `)

	// As the clock wrote it a slot ahead, which is the next to be written.
	if _, err := w.project.Trusted().Exec(t.Context(), `
		update socle.events set slot = (slot + 1) % 10, at = at + interval '3 hours'`); err != nil {
		t.Fatal(err)
	}
	for _, limit := range []int{1 << 30, 0} {
		wantNext(w, w.follow(anon, before, binding), `[0] INSERT prices {"id":1} `)
		w.removeEvents(limit, "1 day")
	}
	if _, err := w.logs.Follow(t.Context(), w.project, anon, []event.Binding{binding}, before); err != event.ErrResync {
		t.Errorf("a cursor before the removed change: got %v, want ErrResync", err)
	}
	w.exec(`insert into prices (id) values (2)`)
	wantNext(w, f, `[0] INSERT prices {"id":2} `)
}

// TestEqualFollowersShare: followers with the same caller and bindings share the encoding of a
// change, others do not.
func TestEqualFollowersShare(t *testing.T) {
	t.Parallel()

	w := newWorld(t)
	whole := event.Binding{Event: "*", Schema: "public", Table: "prices"}
	part := whole
	part.Select = "id"
	var followers []*event.Follower
	for _, f := range []struct {
		caller actor.Actor
		event.Binding
	}{{anon, whole}, {anon, whole}, {anon, part}, {ann, whole}} {
		followers = append(followers, w.follow(f.caller, "", f.Binding))
	}

	// Followers share what the log's reader gives them, not what they read by themselves at first.
	row, calls := 0, 0
	pgtest.Eventually(t, "equal followers share", func() bool {
		row++
		w.exec(fmt.Sprintf(`insert into prices (id) values (%d)`, row))
		calls = 0
		var texts []string
		for _, f := range followers {
			changes, err := f.Next(t.Context())
			if err != nil || len(changes) != 1 {
				t.Fatalf("got %d changes, %v", len(changes), err)
			}
			texts = append(texts, string(changes[0].Encode(func(c *event.Change) []byte {
				calls++
				return c.Record
			})))
		}
		if texts[0] != texts[1] || texts[1] != texts[3] || texts[2] != fmt.Sprintf(`{"id":%d}`, row) {
			t.Fatalf("got %q", texts)
		}

		return calls < len(followers)
	})
	if calls != len(followers)-1 {
		t.Errorf("%d followers encoded %d times, want the first two once", len(followers), calls)
	}
}
