package replica

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

func TestPosition(t *testing.T) {
	t.Parallel()

	for _, p := range []Position{{1, 0}, {2, 0x16B3748}, {1<<32 - 1, 1<<64 - 1}} {
		if got, ok := Parse(p.String()); !ok || got != p {
			t.Errorf("%s: got %v, %t", p, got, ok)
		}
	}

	for _, text := range []string{"", "1", "1-", "1-0", "0-0/1", "1-0/100000000", "-1-0/1", "1-0/1/2", "x-0/1",
		"4294967296-0/1", "1-0/-1"} {
		if p, ok := Parse(text); ok {
			t.Errorf("%q: got %v", text, p)
		}
	}
}

// TestRecordEnd: the next record stands behind a page's header, the end of the last one before it.
func TestRecordEnd(t *testing.T) {
	t.Parallel()

	const block, segment = 8192, 16 << 20
	for insert, want := range map[uint64]uint64{
		3*segment + 40: 3 * segment, 3*segment + block + 24: 3*segment + block, 3*segment + 24: 3*segment + 24,
		3*segment + block + 40: 3*segment + block + 40, 3*segment + 48: 3*segment + 48, 5: 5,
	} {
		if got := recordEnd(insert, block, segment); got != want {
			t.Errorf("%#x: got %#x, want %#x", insert, got, want)
		}
	}
}

// set returns a set with states of standbys.
func set(samples []sample, states ...*state) *Set {
	s := New(&pgx.ConnConfig{}, make([]*pgx.ConnConfig, len(states)), slog.New(slog.DiscardHandler))
	s.samples = samples
	for i, st := range states {
		if st.alive == nil {
			st.alive = context.Background()
		}
		s.standbys[i].state.Store(st)
	}

	return s
}

// TestFreshness: a standby is as old as the newest sample that it has replayed, and on another
// timeline, or behind all samples, it is of no use.
func TestFreshness(t *testing.T) {
	t.Parallel()

	now := time.Now()
	s := set([]sample{{Position{1, 90}, now.Add(-9 * time.Second)}, {Position{2, 100}, now.Add(-2 * time.Second)},
		{Position{2, 110}, now.Add(-time.Second)}})
	for p, want := range map[Position]time.Duration{
		{2, 110}: time.Second, {2, 500}: time.Second, {2, 109}: 2 * time.Second, {1, 500}: 9 * time.Second,
	} {
		if got := now.Sub(s.freshness(p)); got != want {
			t.Errorf("%v: got %v, want %v", p, got, want)
		}
	}
	for _, p := range []Position{{2, 99}, {1, 89}, {3, 500}, {0, 500}} {
		if got := s.freshness(p); !got.IsZero() {
			t.Errorf("%v: got %v", p, got)
		}
	}
}

// TestChoose passes over standbys that are gone, too old, behind a write or on an earlier timeline,
// and lets the others take turns.
func TestChoose(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		now := time.Now()
		s := set(nil, gone, &state{Position: Position{2, 200}, fresh: now.Add(-MaxLag - 1)},
			&state{Position: Position{2, 100}, fresh: now}, &state{Position: Position{1, 300}, fresh: now})

		for after, want := range map[Position]map[int]bool{
			{}: {2: true, 3: true}, {1, 300}: {3: true}, {2, 100}: {2: true}, {2, 101}: {}, {3, 1}: {},
		} {
			got := map[int]bool{}
			for range 8 {
				if c, ok := s.Choose(t.Context(), after); ok {
					got[c.Standby] = true
				}
			}
			if len(got) != len(want) {
				t.Errorf("%v: got %v, want %v", after, got, want)
			}
			for n := range want {
				if !got[n] {
					t.Errorf("%v: got %v, want %v", after, got, want)
				}
			}
		}
	})
}

// TestChooseWaits: a read waits until a standby has replayed its write, half a second at most, and
// not at all without a standby that could.
func TestChooseWaits(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		s := set(nil, &state{Position: Position{1, 100}, fresh: time.Now()})
		b := s.standbys[0]

		go func() {
			<-b.woken
			b.state.Store(&state{Position{1, 150}, time.Now(), t.Context()})
			s.notify()
			<-b.woken
			time.Sleep(waitTimeout - time.Millisecond)
			b.state.Store(&state{Position{1, 200}, time.Now(), t.Context()})
			s.notify()
		}()
		if _, ok := s.Choose(t.Context(), Position{1, 200}); !ok {
			t.Error("a standby replayed the write in time, and was not chosen")
		}

		start := time.Now()
		if _, ok := s.Choose(t.Context(), Position{1, 201}); ok || time.Since(start) != waitTimeout {
			t.Errorf("a write that is never replayed: got %t after %v, want false after %v", ok, time.Since(start),
				waitTimeout)
		}

		b.state.Store(gone)
		start = time.Now()
		if _, ok := s.Choose(t.Context(), Position{1, 100}); ok || time.Since(start) != 0 {
			t.Errorf("without a standby: got %t after %v", ok, time.Since(start))
		}
	})
}

// TestRun follows a standby: what is written becomes readable there, a standby that does not replay
// is not chosen for it, and one that stops is gone.
func TestRun(t *testing.T) {
	t.Parallel()

	primary, standby := pgtest.Replicated(t)
	connect := func(url string) (*pgx.Conn, *pgx.ConnConfig) {
		config, err := pgx.ParseConfig(url)
		if err != nil {
			t.Fatal(err)
		}

		return pgtest.Connect(t, config), config
	}
	writer, source := connect(primary.URL("postgres"))
	reader, copied := connect(standby.URL("postgres"))
	exec := func(conn *pgx.Conn, sql string) {
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}

	s := New(source, []*pgx.ConnConfig{copied}, slog.New(slog.DiscardHandler))
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- s.Run(ctx) }()
	defer func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()

	pgtest.Eventually(t, "the standby is fresh", func() bool {
		_, ok := s.Choose(t.Context(), Position{})
		return ok
	})

	exec(writer, "create table t (n int)")
	for range 20 {
		exec(writer, "insert into t values (1)")

		at, err := s.Position(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		pgtest.Eventually(t, "the standby has replayed a write", func() bool {
			_, ok := s.Choose(t.Context(), at)
			return ok
		})

		var here, there int
		if err := writer.QueryRow(t.Context(), "select count(*) from t").Scan(&here); err != nil {
			t.Fatal(err)
		}
		if err := reader.QueryRow(t.Context(), "select count(*) from t").Scan(&there); err != nil {
			t.Fatal(err)
		}
		if here != there {
			t.Fatalf("the standby at %s: got %d rows, want %d", at, there, here)
		}
	}

	exec(reader, "select pg_wal_replay_pause()")
	exec(writer, "insert into t values (1)")
	at, err := s.Position(t.Context())
	if _, ok := s.Choose(t.Context(), at); err != nil || ok {
		t.Errorf("a standby that does not replay was chosen for a write at %s: %v", at, err)
	}
	exec(reader, "select pg_wal_replay_resume()")

	var choice Choice
	pgtest.Eventually(t, "the standby is fresh again", func() (ok bool) {
		choice, ok = s.Choose(t.Context(), at)
		return ok
	})
	if err := standby.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-choice.Alive.Done()
	if _, ok := s.Choose(t.Context(), Position{}); ok {
		t.Error("a stopped standby was chosen")
	}
}
