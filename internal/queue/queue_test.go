package queue

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// projects is the part of the platform's schema that fair shares depend on.
const projects = `
	create schema platform;
	create table platform.projects (uuid uuid primary key, organization_uuid uuid not null);
	create table platform.accounts (organization uuid primary key, account uuid not null);
	create function platform.account_of(organization uuid) returns uuid language sql stable as $$
		select a.account from platform.accounts a where a.organization = account_of.organization
	$$`

// newPool returns a pool on a new database with the tables of the queue.
func newPool(t *testing.T) *pgxpool.Pool {
	t.Helper()

	url := pgtest.Clone(t, "queue", func(ctx context.Context, url string) error {
		pool, err := pgxpool.New(ctx, url)
		if err != nil {
			return err
		}
		defer pool.Close()

		_, err = pool.Exec(ctx, projects)
		return errors.Join(err, Migrate(ctx, pool), Migrate(ctx, pool))
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
	return pool
}

func newQueue(t *testing.T, pool *pgxpool.Pool) *Queue {
	t.Helper()

	q, err := New(Config{Pool: pool, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}

	return q
}

// start runs a queue. The returned function stops it; the end of the test does at the latest.
func start(t *testing.T, q *Queue) (stop func()) {
	t.Helper()

	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- q.Run(ctx) }()

	stopped := false
	stop = func() {
		t.Helper()

		if stopped {
			return
		}

		stopped = true
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}

	t.Cleanup(stop)
	return stop
}

// receive returns the next value of a channel.
func receive[T any](t *testing.T, c <-chan T, what string) T {
	t.Helper()

	select {
	case v := <-c:
		return v
	case <-time.After(pgtest.Patience):
		t.Fatalf("timeout: %s", what)
		panic("unreachable")
	}
}

type noteArgs struct {
	Text    string    `json:"text" river:"unique"`
	Project uuid.UUID `json:"project"`
	Share   string    `json:"share,omitempty"`
}

func (noteArgs) Kind() string { return "note" }

var noteOptions = Options{Workers: Workers{Queue: "notes", PerServer: 2}, MaxAttempts: 2}

func insert(t *testing.T, q *Queue, a Args) Inserted {
	t.Helper()

	i, err := q.Insert(t.Context(), a)
	if err != nil {
		t.Fatal(err)
	}

	return i
}

// ended waits until all jobs have ended, and returns their states and last errors.
func ended(t *testing.T, pool *pgxpool.Pool) string {
	t.Helper()

	var states []string
	pgtest.Eventually(t, "all jobs have ended", func() bool {
		var err error
		states, err = pg.Values[string](t.Context(), pool, `
			select state::text || coalesce(': ' || (errors[array_upper(errors, 1)] ->> 'error'), '')
			from river.river_job order by id`)
		if err != nil {
			t.Fatal(err)
		}

		return !slices.ContainsFunc(states, func(state string) bool {
			return !slices.Contains([]string{"completed", "cancelled", "discarded"}, strings.Split(state, ":")[0])
		})
	})

	return strings.Join(states, ", ")
}

// TestJobs runs jobs that succeed, complete early, are snoozed, and fail for good.
func TestJobs(t *testing.T) {
	t.Parallel()

	q := newQueue(t, newPool(t))
	snoozed := false
	Register(q, noteOptions, func(ctx context.Context, job *Job[noteArgs]) error {
		switch job.Args.Text {
		case "complete":
			if err := job.Complete(ctx); err != nil {
				return err
			}

			state, err := pg.Value[string](ctx, q.Pool, `select state::text from river.river_job where id = @id`,
				pgx.StrictNamedArgs{"id": job.ID})
			if err != nil || state != "completed" {
				t.Errorf("got state %s, %v of a completed job", state, err)
			}
		case "snooze":
			if !snoozed {
				snoozed = true
				return Snooze(time.Millisecond)
			}
			if job.Attempt != 1 {
				t.Errorf("got attempt %d after a snooze, want 1", job.Attempt)
			}
		case "cancel":
			return Cancel(errors.New("hopeless" + strings.Repeat("!", 2*maxErrorBytes)))
		}

		return nil
	})

	for _, text := range []string{"", "complete", "snooze", "cancel"} {
		insert(t, q, noteArgs{Text: text})
	}

	start(t, q)

	states, cause, _ := strings.Cut(ended(t, q.Pool), ": JobCancelError: hopeless")
	if want := "completed, completed, completed, cancelled"; states != want {
		t.Errorf("got %s, want %s", states, want)
	}
	if len(cause) > maxErrorBytes || !strings.HasSuffix(cause, "…") {
		t.Errorf("a job stores an error of %d bytes", len(cause))
	}
}

// failingStart fails the connections and queries of a pool while a queue starts.
type failingStart struct {
	connections, settings atomic.Int32 // to fail: connections; reads of a queue's settings
}

func (f *failingStart) connect(context.Context, *pgx.ConnConfig) error {
	if f.connections.Add(-1) >= 0 {
		return errors.New("connection refused")
	}

	return nil
}

// TraceQueryStart implements [pgx.QueryTracer].
func (f *failingStart) TraceQueryStart(
	ctx context.Context, _ *pgx.Conn, query pgx.TraceQueryStartData,
) context.Context {
	if !strings.Contains(query.SQL, "-- name: QueueCreateOrSetUpdatedAt") || f.settings.Add(-1) < 0 {
		return ctx
	}

	ctx, cancel := context.WithCancel(ctx)
	cancel()

	return ctx
}

// TraceQueryEnd implements [pgx.QueryTracer].
func (f *failingStart) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// TestRunRetriesStart starts a queue while PostgreSQL refuses connections and ends sessions.
func TestRunRetriesStart(t *testing.T) {
	t.Parallel()

	pool := newPool(t)

	f := &failingStart{}
	f.connections.Store(1)
	f.settings.Store(1)

	c := pool.Config()
	c.BeforeConnect, c.ConnConfig.Tracer = f.connect, f

	failing, err := pgxpool.NewWithConfig(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(failing.Close)

	q, err := New(Config{Pool: pool, River: failing, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}

	Register(q, noteOptions, func(context.Context, *Job[noteArgs]) error { return nil })

	// Not through the failing pool.
	inserter := newQueue(t, pool)
	Register(inserter, noteOptions, func(context.Context, *Job[noteArgs]) error { return nil })
	insert(t, inserter, noteArgs{Text: "a"})

	start(t, q)

	if states := ended(t, pool); states != "completed" {
		t.Errorf("got %s, want completed", states)
	}
	if connections, settings := f.connections.Load(), f.settings.Load(); connections >= 0 || settings >= 0 {
		t.Errorf("too few failures: %d connections and %d reads of settings are left", connections, settings)
	}
}

// TestRunEndsWhileStarting ends a queue that can't start.
func TestRunEndsWhileStarting(t *testing.T) {
	t.Parallel()

	pool := newPool(t)

	refused := make(chan struct{}, 1)
	c := pool.Config()
	c.BeforeConnect = func(context.Context, *pgx.ConnConfig) error {
		select {
		case refused <- struct{}{}:
		default:
		}

		return errors.New("connection refused")
	}

	failing, err := pgxpool.NewWithConfig(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(failing.Close)

	q, err := New(Config{Pool: pool, River: failing, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}

	Register(q, noteOptions, func(context.Context, *Job[noteArgs]) error { return nil })

	stop := start(t, q)
	receive(t, refused, "a start of the queue is refused")
	stop()
}

type unknownArgs struct{}

func (unknownArgs) Kind() string { return "unknown" }

// TestInsert inserts jobs in transactions, twice, and of an unknown kind.
func TestInsert(t *testing.T) {
	t.Parallel()

	q := newQueue(t, newPool(t))
	unique := noteOptions
	unique.Unique = true
	Register(q, unique, func(context.Context, *Job[noteArgs]) error { return nil })

	undone := errors.New("undone")
	if err := pg.InTx(t.Context(), q.Pool, func(tx pgx.Tx) error {
		_, err := q.InsertTx(t.Context(), tx, noteArgs{Text: "undone"})
		return errors.Join(err, undone)
	}); !errors.Is(err, undone) {
		t.Fatal(err)
	}

	if i := insert(t, q, noteArgs{Text: "a"}); i.Duplicate || time.Since(i.CreatedAt) > time.Minute {
		t.Errorf("got %+v for a new job", i)
	}
	if i := insert(t, q, noteArgs{Text: "a", Project: uuid.New()}); !i.Duplicate {
		t.Errorf("got %+v for an equal job", i)
	}
	if i := insert(t, q, noteArgs{Text: "b"}); i.Duplicate {
		t.Errorf("got %+v for another job", i)
	}
	if _, err := q.Insert(t.Context(), unknownArgs{}); fault.Of(err).Kind != fault.Internal {
		t.Errorf("got %v for a job without a worker", err)
	}

	stats, err := q.Stats(t.Context())
	if err != nil || stats.Waiting != 2 || stats.Running != 0 {
		t.Errorf("got %+v, %v, want two waiting jobs", stats, err)
	}

	start(t, q)
	ended(t, q.Pool)

	if i := insert(t, q, noteArgs{Text: "a"}); i.Duplicate {
		t.Errorf("got %+v for an equal job that has ended", i)
	}
}
