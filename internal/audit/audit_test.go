package audit_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
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

	chain(t, pool)
	return pool
}

func chain(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()

	if err := audit.Chain(t.Context(), pool, key); err != nil {
		t.Fatal(err)
	}
}

func begin(t *testing.T) context.Context {
	return audit.Begin(t.Context(), key,
		audit.Entry{Action: "changeNothing", Client: "192.0.2.1", Request: uuid.NewString()})
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

// TestWriteAtOnce: concurrent changes do not wait for each other, and concurrent chaining neither
// loses nor repeats entries.
func TestWriteAtOnce(t *testing.T) {
	t.Parallel()

	pool := newLog(t, 0)
	open, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = open.Rollback(t.Context()) }()

	if _, err := open.Exec(t.Context(), `select socle.write_audit('{"action": "unfinished"}', 'mac')`); err != nil {
		t.Fatal(err)
	}

	var wg sync.WaitGroup
	for i := range 40 {
		wg.Go(func() {
			if err := audit.Write(begin(t), pool, nothing); err != nil {
				t.Error(err)
			}

			if i%10 == 0 {
				chain(t, pool)
			}
		})
	}

	wg.Wait()
	chain(t, pool)

	report, err := audit.Check(t.Context(), pool, key)
	if err != nil || len(report.Faults) > 0 || report.Entries != 40 {
		t.Errorf("got %+v, %v, want 40 entries and no fault", report, err)
	}
}

// TestChainForged: entries that someone without the key inserts as pending, copies of true ones
// included, are detected in the chain, and the entries after them are not.
func TestChainForged(t *testing.T) {
	t.Parallel()

	pool := newLog(t, 0)
	if err := audit.Write(begin(t), pool, nothing); err != nil {
		t.Fatal(err)
	}

	exec(t, pool, `
		create table public.copies as select entry, mac from socle.audit_pending;
		select socle.write_audit(entry, mac) from public.copies;
		select socle.write_audit('{"action": "forged"}', 'no mac')`)
	chain(t, pool)

	if err := audit.Write(begin(t), pool, nothing); err != nil {
		t.Fatal(err)
	}

	exec(t, pool, `select socle.write_audit(entry, mac) from public.copies`)
	chain(t, pool)

	report, err := audit.Check(t.Context(), pool, key)
	want := []string{
		"entry 2 does not match its hash", "entry 3 does not match its hash", "entry 5 does not match its hash",
	}
	if diff := cmp.Diff(want, report.Faults); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
}

// TestPendingIsBounded: the function that owners of projects may call rejects malformed entries.
func TestPendingIsBounded(t *testing.T) {
	t.Parallel()

	pool := newLog(t, 0)
	for sql, want := range map[string]string{
		`select socle.write_audit('no JSON', 'mac')`:                          "22P02",
		`select socle.write_audit(to_json(repeat('x', 65536))::text, 'mac')`:  "23514",
		`select socle.write_audit('{}', convert_to(repeat('x', 65), 'UTF8'))`: "23514",
	} {
		if _, err := pool.Exec(t.Context(), sql); pg.State(err) != want {
			t.Errorf("%s: got %v, want SQLSTATE %s", sql, err, want)
		}
	}
}

func TestWriteNothing(t *testing.T) {
	t.Parallel()

	pool := newLog(t, 1)

	failure := errors.New("refused")
	ctx := begin(t)
	if err := audit.Write(ctx, pool, func(pgx.Tx) error { return failure }); !errors.Is(err, failure) {
		t.Errorf("got %v, want %v", err, failure)
	}

	position, err := audit.PositionOf(t.Context(), pool)
	if err != nil || position.Entries != 1 || audit.Committed(ctx) {
		t.Errorf("got %+v, %v, committed %v, want 1 entry", position, err, audit.Committed(ctx))
	}
}

// TestExpect: a change fails if another one followed the expected position, whether that is chained
// or pending.
func TestExpect(t *testing.T) {
	t.Parallel()

	pool := newLog(t, 1)
	position, err := audit.PositionOf(t.Context(), pool)
	if err != nil {
		t.Fatal(err)
	}

	expecting := audit.Expect(begin(t), position)
	if err := audit.Write(expecting, pool, nothing); err != nil || !audit.Committed(expecting) {
		t.Errorf("the first: %v, committed %v", err, audit.Committed(expecting))
	}

	for range 2 {
		if err := audit.Write(expecting, pool, nothing); !errors.Is(err, audit.ErrPositionChanged) {
			t.Errorf("the second: got %v, want %v", err, audit.ErrPositionChanged)
		}

		chain(t, pool)
	}
}

// TestExpectAtOnce: of concurrent changes that expect one position, one succeeds.
func TestExpectAtOnce(t *testing.T) {
	t.Parallel()

	pool := newLog(t, 1)
	position, err := audit.PositionOf(t.Context(), pool)
	if err != nil {
		t.Fatal(err)
	}

	var wg sync.WaitGroup
	var succeeded atomic.Int64
	for range 8 {
		wg.Go(func() {
			switch err := audit.Write(audit.Expect(begin(t), position), pool, nothing); {
			case err == nil:
				succeeded.Add(1)
			case !errors.Is(err, audit.ErrPositionChanged):
				t.Error(err)
			}
		})
	}

	wg.Wait()

	if n := succeeded.Load(); n != 1 {
		t.Errorf("%d changes succeeded, want 1", n)
	}
}

// TestKeyOnce: a key is used once, whether its entry is pending or chained.
func TestKeyOnce(t *testing.T) {
	t.Parallel()

	pool := newLog(t, 0)

	ctx := audit.Begin(t.Context(), key, audit.Entry{Action: "create", Key: "k"})
	if err := audit.Write(ctx, pool, nothing); err != nil {
		t.Fatal(err)
	}

	for range 2 {
		if err := audit.Write(ctx, pool, nothing); !fault.Is(err, fault.Conflict) {
			t.Errorf("got %v, want a conflict", err)
		}

		if has, err := audit.HasKey(t.Context(), pool, "k"); err != nil || !has {
			t.Errorf("got %v, %v, want the key", has, err)
		}

		chain(t, pool)
	}
}

// TestOne makes changes of one row: each has an entry, unless nothing changed.
func TestOne(t *testing.T) {
	t.Parallel()

	pool := newLog(t, 0)
	exec(t, pool, `create table public.counts (name text primary key, n int not null)`)
	exec(t, pool, `insert into public.counts values ('a', 0)`)

	type count struct{ N int }
	change := audit.Change{SQL: `update public.counts set n = n + 1 where name = @name returning n`,
		Args: pgx.StrictNamedArgs{"name": "a"}}
	entries := func() int64 {
		t.Helper()

		p, err := audit.PositionOf(t.Context(), pool)
		if err != nil {
			t.Fatal(err)
		}

		return p.Entries
	}

	for i, early := range []bool{false, true} {
		change.EarlyRelease = early
		ctx := begin(t)
		if got, err := audit.One[count](ctx, pool, change); err != nil || got.N != i+1 {
			t.Errorf("early release %t: got %d (%v), want %d", early, got.N, err, i+1)
		}
		if !audit.Committed(ctx) || entries() != int64(i+1) {
			t.Errorf("early release %t: got %d entries, want %d", early, entries(), i+1)
		}
	}

	missing := change
	missing.Args = pgx.StrictNamedArgs{"name": "b"}
	if _, err := audit.One[count](begin(t), pool, missing); !fault.Is(err, fault.NotFound) || entries() != 2 {
		t.Errorf("without a row: got %v and %d entries, want NotFound and 2", err, entries())
	}

	// Without an entry in the context, and in a transaction of the caller.
	if got, err := audit.One[count](t.Context(), pool, change); err != nil || got.N != 3 || entries() != 2 {
		t.Errorf("without an entry: got %d (%v) and %d entries, want 3 and 2", got.N, err, entries())
	}

	err := audit.Write(begin(t), pool, func(tx pgx.Tx) error {
		_, err := audit.One[count](begin(t), tx, change)
		return err
	})
	if err != nil || entries() != 3 {
		t.Errorf("in a transaction: got %v and %d entries, want none and 3", err, entries())
	}

	ctx := audit.Begin(t.Context(), key, audit.Entry{Action: "changeNothing", Key: "k"})
	if _, err := audit.One[count](ctx, pool, change); err != nil {
		t.Errorf("with a key: got %v, want no error", err)
	}
	if _, err := audit.One[count](ctx, pool, change); fault.Of(err).Code != "already_done" || entries() != 4 {
		t.Errorf("with the same key: got %v and %d entries, want already_done and 4", err, entries())
	}

	stale := audit.Expect(begin(t), audit.Position{Log: "platform", Entries: 1})
	if _, err := audit.One[count](stale, pool, change); !errors.Is(err, audit.ErrPositionChanged) {
		t.Errorf("after another change: got %v, want %v", err, audit.ErrPositionChanged)
	}
}

// TestChainReadsByIndex: to chain entries costs the same in a short and in a long log, also under
// plans from a time when the tables were empty.
func TestChainReadsByIndex(t *testing.T) {
	t.Parallel()

	conn, err := newLog(t, 0).Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()

	scans := func() (n int) {
		t.Helper()

		if _, err := conn.Exec(t.Context(), `select pg_stat_force_next_flush()`); err != nil {
			t.Fatal(err)
		}

		err := conn.QueryRow(t.Context(), `
			select sum(seq_scan)::int from pg_stat_user_tables
			where schemaname = 'socle' and relname in ('audit', 'audit_pending')`).Scan(&n)
		if err != nil {
			t.Fatal(err)
		}

		return n
	}

	before := scans()
	for round := range 8 {
		if _, err := conn.Exec(t.Context(), `
			select socle.write_audit(format('{"at": "%s", "key": "%s"}', $1 + n, $1 + n), 'mac')
			from generate_series(1, 250) n`, round*1000); err != nil {
			t.Fatal(err)
		}

		if err := audit.Chain(t.Context(), conn, key); err != nil {
			t.Fatal(err)
		}
	}

	if after := scans(); after != before {
		t.Errorf("chaining has scanned a table %d times", after-before)
	}
}
