package event_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/event"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/pgtest"
	"github.com/socle-dev/socle/internal/projectdb/projectdbtest"
)

// TestRetention: changes stay as long as the limits say, the log's slots follow them, and cursors
// before removed changes are told.
func TestRetention(t *testing.T) {
	t.Parallel()

	w := newWorld(t)
	binding := event.Binding{Event: "INSERT", Schema: "public", Table: "prices", Select: "id"}
	f := w.follow(anon, "", binding)
	before := f.Cursor()
	w.exec(`insert into prices (id) values (1)`)
	wantNext(w, f, `[0] INSERT prices {"id":1} `)
	w.trusted(`update socle.events set at = at - interval '30 hours'`)
	w.trusted(`insert into socle.realtime_limits (log_hours) values (48)`)

	slot := `select pg_get_expr(adbin, adrelid) from pg_attrdef where adrelid = 'socle.events'::regclass and adnum = 1`
	want := strings.Replace(pgtest.Value[string](t, w.project.Trusted(), slot), "10800", "21600", 1)
	pgtest.Eventually(t, "the slots are longer", func() bool {
		if err := event.Subject().Sweep(t.Context(), w.project); err != nil {
			t.Fatal(err)
		}

		return pgtest.Value[string](t, w.project.Trusted(), slot) == want
	})
	wantNext(w, w.follow(anon, before, binding), `[0] INSERT prices {"id":1} `)

	err := pg.InTx(t.Context(), w.project.Trusted(), func(tx pgx.Tx) error {
		if _, err := pg.Exec(t.Context(), tx, `lock table socle.events in row exclusive mode`); err != nil {
			return err
		}

		_, err := pg.Exec(t.Context(), w.project.Trusted(), `select socle.spread_events('48 hours')`)
		return err
	})
	if err != nil {
		t.Errorf("slots that need no change wait for a writer: %v", err)
	}

	pgtest.Eventually(t, "the transactions before the change have ended", func() bool {
		return pgtest.Value[bool](t, w.project.Trusted(),
			`select pg_snapshot_xmin(pg_current_snapshot()) > (select max(xid) from socle.events)`)
	})
	f = w.follow(anon, "", binding)
	w.removeEvents(1<<30, "29 hours")
	if _, err := w.logs.Follow(t.Context(), w.project, anon, []event.Binding{binding}, before); err != event.ErrResync {
		t.Errorf("a cursor before the removed change: got %v, want ErrResync", err)
	}
	w.exec(`insert into prices (id) values (2)`)
	wantNext(w, f, `[0] INSERT prices {"id":2} `)
}

// TestUpdateLimits: servers are told of the project whose limits change.
func TestUpdateLimits(t *testing.T) {
	t.Parallel()

	p := projectdbtest.New(t)
	config := p.Trusted().Config().ConnConfig
	server := pgtest.Connect(t, config)
	pgtest.Exec(t, server, `listen `+event.LimitsChannel)

	for _, c := range []event.LimitChange{{LogHours: new(7)}, {Sockets: new(3)}} {
		if _, err := event.UpdateLimits(t.Context(), p.Trusted(), p, c); err != nil {
			t.Fatal(err)
		}

		told, err := server.WaitForNotification(t.Context())
		if err != nil || told.Payload != p.UUID.String() {
			t.Fatalf("got %+v, %v, want the project's UUID", told, err)
		}
	}

	want := event.DefaultLimits
	want.LogHours, want.Sockets = 7, 3
	if got, err := event.GetLimits(t.Context(), p.Trusted()); err != nil || got != want {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
}

// TestCopyLimits: a backup's limits do not hold, those of the database that is replaced do.
func TestCopyLimits(t *testing.T) {
	t.Parallel()

	unset, set := projectdbtest.New(t), projectdbtest.New(t)
	insert := func(q pg.Querier, hours int) {
		t.Helper()

		_, err := pg.Exec(t.Context(), q, `insert into socle.realtime_limits (log_hours, payload_bytes) values (@hours, @hours)`,
			pgx.StrictNamedArgs{"hours": hours})
		if err != nil {
			t.Fatal(err)
		}
	}
	insert(set.Trusted(), 7)

	custom := event.DefaultLimits
	custom.LogHours, custom.PayloadBytes = 7, 7
	copyQuota := event.Subject().Restore.CopyQuota
	for from, want := range map[pg.Querier]event.RealtimeLimits{
		unset.Trusted(): event.DefaultLimits, set.Trusted(): custom,
	} {
		restored := projectdbtest.New(t).Trusted()
		insert(restored, 200)
		if err := copyQuota(t.Context(), from, restored); err != nil {
			t.Fatal(err)
		}

		got, err := event.GetLimits(t.Context(), restored)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
	}
}
