package session

import (
	"bytes"
	"context"
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/socle-dev/socle/internal/actor"
	"github.com/socle-dev/socle/internal/rest/catalog"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/jackc/pgx/v5/pgxpool"
)

// row returns a row of a statement of package plan.
func row(body []byte) [][]byte {
	return [][]byte{[]byte("7"), []byte("2"), nil, []byte("[]"), nil, nil, body}
}

func TestBufferedBody(t *testing.T) {
	t.Parallel()

	body := bytes.Repeat([]byte("x"), 2*uncountedResponse)
	pool := fakePool(t, answer(row(body), func() {}))
	x := New(Config{})

	res, err := x.Execute(t.Context(), read(pool))
	if err != nil {
		t.Fatal(err)
	}

	if res.Total != 7 || res.Rows != 2 || res.Inserted != -1 || res.Estimate != -1 || string(res.Headers) != "[]" ||
		res.Status != nil || res.Streamed() || res.Size != len(body) || !bytes.Equal(res.Body, body) {
		t.Errorf("got %+v, want the row and its body", res)
	}
	if n := pool.Stat().AcquiredConns(); n != 0 {
		t.Errorf("got %d connections in use, want none: the body is buffered", n)
	}
	if n := x.Budget.InUse(); n != len(body) {
		t.Errorf("got %d bytes of the budget in use, want %d", n, len(body))
	}

	res.Release()

	if n := x.Budget.InUse(); n != 0 {
		t.Errorf("released: got %d bytes of the budget in use, want none", n)
	}
}

func TestStreamedBody(t *testing.T) {
	t.Parallel()

	body := bytes.Repeat([]byte("0123456789"), maxBufferedBody/10+1)
	var cleaned atomic.Int32
	pool := fakePool(t, answer(row(body), func() { cleaned.Add(1) }))
	x := New(Config{})

	for n := range int32(2) {
		res, err := x.Execute(t.Context(), read(pool))
		if err != nil {
			t.Fatal(err)
		}

		if !res.Streamed() || res.Size != len(body) || res.Body != nil || res.Rows != 2 {
			t.Fatalf("got %+v, want a streamed body of %d bytes", res, len(body))
		}
		if pool.Stat().AcquiredConns() != 1 {
			t.Error("the connection of an unread body is not in use")
		}

		var got recorder
		if err := res.Stream(&got); err != nil || !bytes.Equal(got.Bytes(), body) {
			t.Errorf("got %d bytes, %v, want %d", got.Len(), err, len(body))
		}
		if cleaned.Load() != n+1 || pool.Stat().AcquiredConns() != 0 || res.Streamed() {
			t.Error("the session was not cleaned and returned after the body")
		}

		res.Release()
	}

	if n := pool.Stat().NewConnsCount(); n != 1 || x.Budget.InUse() != 0 {
		t.Errorf("got %d connections, %d bytes of the budget in use, want 1 and none", n, x.Budget.InUse())
	}
}

func TestUnreadBodyDiscardsConnection(t *testing.T) {
	t.Parallel()

	body := bytes.Repeat([]byte("x"), 2*maxBufferedBody)
	pool := fakePool(t, answer(row(body), func() {}))
	x := New(Config{Budget: NewBudget(ChunkSize)}) // no budget to read ahead
	refused := errors.New("refused")

	for name, end := range map[string]func(*Result){
		"released": func(*Result) {},
		"client failed": func(res *Result) {
			if _, ok := errors.AsType[ClientError](res.Stream(&recorder{err: refused})); !ok {
				t.Error("got no ClientError")
			}
		},
	} {
		before := pool.Stat().NewConnsCount()
		res, err := x.Execute(t.Context(), read(pool))
		if err != nil {
			t.Fatal(err)
		}

		end(res)
		res.Release()

		if res, err = x.Execute(t.Context(), read(pool)); err != nil {
			t.Fatalf("after it (%s): %v", name, err)
		}

		if err := res.Stream(&recorder{}); err != nil || pool.Stat().NewConnsCount() == before {
			t.Errorf("%s: got %v on the same connection, want another one", name, err)
		}

		res.Release()
	}
}

// TestDisconnectDuringBody checks that a request canceled while its body is read from PostgreSQL
// reports that the client has disconnected, not that the read was interrupted.
func TestDisconnectDuringBody(t *testing.T) {
	t.Parallel()

	pool := fakePool(t, answer(row(bytes.Repeat([]byte("x"), 4*maxBufferedBody)), func() {}))
	ctx, disconnect := context.WithCancel(t.Context())

	res, err := New(Config{Budget: NewBudget(ChunkSize)}).Execute(ctx, read(pool)) // no budget to read ahead
	if err != nil {
		t.Fatal(err)
	}
	defer res.Release()

	watchdog := res.pipeline.watchdog
	err = res.Stream(&recorder{onWrite: func() {
		disconnect()
		<-watchdog.Done()
		watchdog.Deadline() // returns after the interruption
	}})
	if _, ok := errors.AsType[ClientError](err); !ok {
		t.Errorf("got %v, want a ClientError", err)
	}
}

func TestAcquire(t *testing.T) {
	t.Parallel()

	config, err := pgxpool.ParseConfig("postgres://user@127.0.0.1/database?sslmode=disable")
	if err != nil {
		t.Fatal(err)
	}

	config.ConnConfig.DialFunc = func(ctx context.Context, _, _ string) (net.Conn, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}

	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()

	ctx, cancel := context.WithTimeoutCause(t.Context(), 0, ErrNoConnection)
	defer cancel()

	if _, err := New(Config{}).Execute(ctx, read(pool)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("of a request that ended: got %v, want %v", err, context.DeadlineExceeded)
	}

	x := New(Config{AcquireTimeout: time.Millisecond})
	if _, err := x.Execute(t.Context(), read(pool)); !errors.Is(err, ErrNoConnection) {
		t.Errorf("beyond the timeout: got %v, want %v", err, ErrNoConnection)
	}
	if n := x.acquiring.Load(); n != 0 {
		t.Errorf("got %d executions waiting, want none", n)
	}
}

// TestFailures checks which failures end an execution, and which make it run on another connection.
func TestFailures(t *testing.T) {
	t.Parallel()

	state := func(code string) func(error) bool {
		return func(err error) bool {
			e, ok := errors.AsType[*pgconn.PgError](err)
			return ok && e.Code == code && !IsStaleCatalog(err)
		}
	}

	isNUL := func(err error) bool { return err == ErrNUL }
	for _, test := range []struct {
		name, severity, code, message, sql string
		want                               func(error) bool
	}{
		{"another version", "ERROR", "22P02", staleCatalogMarker, "select", IsStaleCatalog},
		{"invalid setting", "ERROR", "22P02", "invalid", "select", state("22P02")},
		{"shutdown, twice", "FATAL", "57P01", "shutdown", "select", state("57P01")},
		{"NUL", "", "", "", "select '\x00'", isNUL},
	} {
		answer := pgproto3.ErrorResponse{Severity: test.severity, Code: test.code, Message: test.message}
		pool := fakePool(t, fail(&answer))
		e := read(pool)
		e.Statement.SQL, e.Version = test.sql, Version{"select version", "1"}

		if _, err := New(Config{}).Execute(t.Context(), e); !test.want(err) {
			t.Errorf("%s: got %v", test.name, err)
		}
		if n := pool.Stat().NewConnsCount(); (n > 1) != (test.severity == "FATAL") {
			t.Errorf("%s: got %d connections", test.name, n)
		}
	}
}

// recorder is a Writer that keeps what it gets, or fails.
type recorder struct {
	bytes.Buffer
	err      error
	onWrite  func() // called before each write, unless nil
	deadline time.Time
}

func (r *recorder) Write(b []byte) (int, error) {
	if r.onWrite != nil {
		r.onWrite()
	}
	if r.err != nil {
		return 0, r.err
	}
	return r.Buffer.Write(b)
}

func (r *recorder) SetWriteDeadline(t time.Time) error {
	r.deadline = t
	return nil
}

func TestSettingsStatement(t *testing.T) {
	t.Parallel()

	all := []actor.Setting{{Name: "role", Value: []byte("anon")}, {Name: "it's", Value: []byte("x")}}
	var s scratch
	got := s.settingsStatement(all, true, Version{"select v", "3"})
	want := "select (case when (select v) operator(pg_catalog.=) $3 then '0' else '" + staleCatalogMarker +
		"' end)::pg_catalog.int4, pg_catalog.set_config('role', $1, true), pg_catalog.set_config('it''s', $2, true), " +
		"pg_catalog.set_config('transaction_read_only', 'on', true)"
	if got != want || string(bytes.Join(s.values, []byte(","))) != "anon,x,3" {
		t.Errorf("got %s of %q, want %s", got, s.values, want)
	}

	other := s.settingsStatement(all[:1], false, Version{"select v", ""})
	if other != "select pg_catalog.set_config('role', $1, true)" || len(s.values) != 1 {
		t.Errorf("without a version: got %s of %q", other, s.values)
	}
}

func TestPlannedRows(t *testing.T) {
	t.Parallel()

	for plan, want := range map[string]int64{
		`[{"Plan": {"Plan Rows": 12, "Plans": [{"Plan Rows": 99}]}}]`: 12, `[{"Plan": {}}]`: -1, "": -1,
		`{"Plan Rows": x}`: -1, `{"Plan Rows": 5`: -1, `{"Plan Rows": 99999999999999999999}`: -1,
	} {
		if got := plannedRows([]byte(plan)); got != want {
			t.Errorf("%s: got %d, want %d", plan, got, want)
		}
	}
}

func TestStatementCache(t *testing.T) {
	t.Parallel()

	p := pipeline{Execution: &Execution{Catalog: &catalog.Catalog{}}, wire: wire{session: &session{}}}
	s, err := p.statements()
	if err != nil {
		t.Fatal(err)
	}

	first, _ := s.get("anon", "0")
	for i := 1; i < maxStatements; i++ {
		if _, evicted := s.get("anon", strings.Repeat("x", i)); evicted != nil {
			t.Fatalf("statement %d evicted %s", i, evicted.key.sql)
		}
	}

	if again, evicted := s.get("anon", "0"); again != first || evicted != nil {
		t.Error("a cached statement was not found")
	}
	if other, evicted := s.get("owner", "0"); other == first || evicted == nil || evicted.key.sql != "x" {
		t.Errorf("another role: got eviction of %v, want that of the least recently used", evicted)
	}

	s.drop(first)
	s.drop(first)

	if again, evicted := s.get("anon", "0"); again == first || evicted != nil {
		t.Error("a dropped statement was found")
	}

	s.invalidate()

	if s, err = p.statements(); err != nil || len(s.byKey) != 0 || len(p.out) == 0 {
		t.Errorf("invalidated: got %d statements, %d bytes that close them, %v", len(s.byKey), len(p.out), err)
	}
}
