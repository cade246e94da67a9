package audit_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/socle-dev/socle/internal/audit"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/pgtest"
	"github.com/socle-dev/socle/internal/platform"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

var key = []byte("a key of the instance, which the database does not hold")

// newLog returns a platform database with n log entries.
func newLog(t *testing.T, n int) *pgxpool.Pool {
	t.Helper()

	url := pgtest.Clone(t, "platform", func(ctx context.Context, url string) error {
		conn, err := pgx.Connect(ctx, url)
		if err != nil {
			return err
		}

		return errors.Join(platform.Migrate(ctx, conn), conn.Close(ctx))
	})

	c, err := pg.PoolConfig(url, 8)
	if err != nil {
		t.Fatal(err)
	}

	pool, err := pgxpool.NewWithConfig(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(pool.Close)

	for range n {
		if err := audit.Write(begin(t), pool, nothing); err != nil {
			t.Fatal(err)
		}
	}

	return pool
}

func begin(t *testing.T) context.Context {
	return audit.Begin(t.Context(), key, audit.Entry{Action: "changeNothing", Client: "192.0.2.1"})
}

func nothing(pgx.Tx) error { return nil }

func exec(t *testing.T, pool *pgxpool.Pool, sql string, args ...any) {
	t.Helper()

	if _, err := pool.Exec(t.Context(), sql, args...); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// TestCheck: Check detects and locates every manipulation by someone with access to the database.
func TestCheck(t *testing.T) {
	t.Parallel()

	for _, test := range []struct{ does, finds string }{
		{"", ""},
		{`update socle.audit set entry = replace(entry, '192.0.2.1', '192.0.2.2') where seq = 3`,
			"entry 3 does not match"},
		{`update socle.audit set entry = entry || ' ' where seq = 5`, "entry 5 does not match"},
		{`update socle.audit a set entry = b.entry from socle.audit b where a.seq = 2 and b.seq = 4`,
			"entry 2 does not match"},
		{`delete from socle.audit where seq = 3`, "entries 3 to 3 are missing"},
		{`delete from socle.audit where seq <= 2`, "entries 1 to 2 are missing"},
		{`delete from socle.audit where seq = 5`, "ends with entry 4"},
		{`update socle.audit set seq = seq + 10 where seq = 3`, "are missing"},
		{`select socle.append_audit(6, '{"action": "forged"}', 'no hash')`, "entry 6 does not match"},
		{`update socle.audit set hash = 'other' where seq = 5`, "entry 5 does not match"},
		{`update socle.audit_head set hash = 'other'`, "ends with"},
		{`delete from socle.audit where seq = 4; update socle.audit set seq = 4 where seq = 5`,
			"entry 4 does not match"},
	} {
		pool := newLog(t, 5)
		if test.does != "" {
			exec(t, pool, test.does)
		}

		report, err := audit.Check(t.Context(), pool, key)
		if err != nil {
			t.Fatal(err)
		}

		if got := strings.Join(report.Faults, "; "); (test.finds == "" && got != "") ||
			!strings.Contains(got, test.finds) {
			t.Errorf("%s: found %q, want %q", test.does, got, test.finds)
		}
	}

	report, err := audit.Check(t.Context(), newLog(t, 5), []byte("another key"))
	if err != nil || len(report.Faults) != 5 {
		t.Errorf("under another key: got %v, %v, want 5 faults", report.Faults, err)
	}
}

// TestWriteAtOnce: concurrent changes are serialized.
func TestWriteAtOnce(t *testing.T) {
	t.Parallel()

	pool := newLog(t, 0)
	var wg sync.WaitGroup
	for range 40 {
		wg.Go(func() {
			if err := audit.Write(begin(t), pool, nothing); err != nil {
				t.Error(err)
			}
		})
	}

	wg.Wait()

	report, err := audit.Check(t.Context(), pool, key)
	if err != nil || len(report.Faults) > 0 || report.Entries != 40 {
		t.Errorf("got %+v, %v, want 40 entries and no fault", report, err)
	}
}

func TestWriteNothing(t *testing.T) {
	t.Parallel()

	pool := newLog(t, 1)

	failure := errors.New("refused")
	if err := audit.Write(begin(t), pool, func(pgx.Tx) error { return failure }); !errors.Is(err, failure) {
		t.Errorf("got %v, want %v", err, failure)
	}

	head, err := audit.HeadOf(t.Context(), pool)
	if err != nil || head.Seq != 1 {
		t.Errorf("got %+v, %v, want 1 entry", head, err)
	}
}

func TestExpect(t *testing.T) {
	t.Parallel()

	pool := newLog(t, 1)
	head, err := audit.HeadOf(t.Context(), pool)
	if err != nil {
		t.Fatal(err)
	}

	expecting := audit.Expect(begin(t), head)
	if err := audit.Write(expecting, pool, nothing); err != nil {
		t.Errorf("the first: %v", err)
	}

	if err := audit.Write(expecting, pool, nothing); !errors.Is(err, audit.ErrHeadChanged) {
		t.Errorf("the second: got %v, want %v", err, audit.ErrHeadChanged)
	}
}

func TestKeyOnce(t *testing.T) {
	t.Parallel()

	pool := newLog(t, 0)

	ctx := audit.Begin(t.Context(), key, audit.Entry{Action: "create", Key: "k"})
	if err := audit.Write(ctx, pool, nothing); err != nil {
		t.Fatal(err)
	}

	if err := audit.Write(ctx, pool, nothing); !fault.Is(err, fault.Conflict) {
		t.Errorf("got %v, want a conflict", err)
	}
}
