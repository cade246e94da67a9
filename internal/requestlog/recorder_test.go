package requestlog

import (
	"bytes"
	"context"
	"log/slog"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/socle-dev/socle/internal/httpx"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/pgtest"
	"github.com/socle-dev/socle/internal/platform"
	"github.com/socle-dev/socle/internal/platform/platformtest"
)

// TestRequestsWithoutDatabase checks that an unresponsive database does not block requests. Entries
// beyond the queue must be dropped, counted and reported once.
func TestRequestsWithoutDatabase(t *testing.T) {
	t.Parallel()

	pool, err := pgxpool.New(t.Context(), "postgres://nobody@"+strings.ReplaceAll(t.TempDir(), "/", "%2F")+"/none")
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()

	var text bytes.Buffer
	l := NewRecorder(platform.New(pool), slog.New(slog.NewTextHandler(&text, nil)))
	id, project := uuid.Must(uuid.NewV7()), uuid.Must(uuid.NewV7())

	l.sample.perDay = 1 << 40 // bytes
	note := func() {
		l.Record(httpx.Finished{
			Request: &httpx.Request{ID: id.String(), Start: time.Now(), Project: project, Route: "GET /tables"},
			Method:  "GET",
			Status:  404,
		})
	}

	for range maxQueued + 5 {
		note()
	}

	if len(l.queue) != maxQueued || l.drops != 5 {
		t.Errorf("got %d queued and %d dropped, want %d and 5", len(l.queue), l.drops, maxQueued)
	}

	l.Record(httpx.Finished{Request: &httpx.Request{ID: id.String()}}) // not to a project

	if l.drops != 5 {
		t.Error("a request outside of projects is counted")
	}

	l.write(t.Context(), nil)

	if got := text.String(); !strings.Contains(got, "dropped=16389") || strings.Count(got, "\n") != 1 {
		t.Errorf("got the log\n%s", got)
	}

	note()
	l.write(t.Context(), nil)

	if got := text.String(); strings.Count(got, "\n") != 1 {
		t.Errorf("the warning is repeated at once:\n%s", got)
	}

	note()
	ended, cancel := context.WithCancel(t.Context())
	cancel()

	if err := l.Run(ended); err != nil {
		t.Error(err)
	}

	if got := text.String(); !strings.Contains(got, "dropped=2") {
		t.Errorf("the final warning is missing:\n%s", got)
	}
}

// TestStopWhileWriting stops a recorder whose write waits for the database.
func TestStopWhileWriting(t *testing.T) {
	t.Parallel()

	i := platformtest.New(t)
	l := NewRecorder(new(platform.Store).In(i.DB), slog.New(slog.NewTextHandler(t.Output(), nil)))
	lock, err := i.DB.Beginner().Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Rollback(t.Context())

	if _, err := lock.Exec(t.Context(), "lock platform.requests"); err != nil {
		t.Fatal(err)
	}

	project, now := i.Project(), time.Now()
	l.queue = []record{{uuid: uuid.Must(uuid.NewV7()), project: project, at: now}}
	l.halfFull <- struct{}{}

	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- l.Run(ctx) }()

	pgtest.Eventually(t, "the write waits", func() bool {
		return pgtest.Value[bool](t, i.DB.Querier(), `select exists (select from pg_stat_activity
			where datname = current_database() and wait_event_type = 'Lock')`)
	})
	stop()

	if err := lock.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}

	if n, err := pg.Value[int](t.Context(), i.DB.Querier(), `select count(*) from platform.requests`); n != 1 {
		t.Errorf("got %d logged requests, %v, want 1", n, err)
	}
}

// TestSample checks that a sample of many successful requests is kept, that a project over its
// bound keeps failures longer than successes, and that its bucket fills again.
func TestSample(t *testing.T) {
	t.Parallel()

	const size = 100
	start := time.Now()
	busy, quiet := uuid.Must(uuid.NewV7()), uuid.Must(uuid.NewV7())
	s := newSample(burstShare * 200 * size) // 200 requests at once
	take := func(project uuid.UUID, n int, failed bool) (kept int) {
		for range n {
			if s.take(project, size, failed) {
				kept++
			}
		}

		return kept
	}
	check := func(what string, got, want int) {
		t.Helper()

		if got != want {
			t.Errorf("%s: got %d kept, want %d", what, got, want)
		}
	}

	s.refill(start)
	check("successes of a second", take(busy, 150, false), maxSuccesses)
	check("another project", take(quiet, 1, false), 1)
	check("failures", take(busy, 150, true), 100)
	s.refill(start)
	check("successes of a full bucket", take(busy, 1, false), 0)
	check("failures of a full bucket", take(busy, 1, true), 0)
	s.refill(start.Add(30 * time.Minute))
	check("failures after half an hour", take(busy, 150, true), 100)
	s.refill(start.Add(2 * time.Hour))
	check("successes after an hour", take(busy, 150, false), 100)
	s.refill(start.Add(4 * time.Hour))

	if len(s.allowances) != 0 {
		t.Errorf("got %d allowances of idle projects", len(s.allowances))
	}
}

// TestRecordIgnores checks that requests outside of projects and preflights are not kept, and that
// the queue keeps no long text in memory.
func TestRecordIgnores(t *testing.T) {
	t.Parallel()

	l := NewRecorder(nil, slog.New(slog.DiscardHandler))
	note := func(method string, project uuid.UUID) {
		l.Record(httpx.Finished{Method: method, Status: 200, URL: &url.URL{RawQuery: strings.Repeat("q", 60_000)},
			Request: &httpx.Request{ID: uuid.Must(uuid.NewV7()).String(), Project: project, Subject: project.String()}})
	}

	note("GET", uuid.Nil)
	note("OPTIONS", uuid.Must(uuid.NewV7()))
	project := uuid.Must(uuid.NewV7())
	note("GET", project)

	if len(l.queue) != 1 || len(l.queue[0].query) != maxRaw || l.queue[0].endUser != project {
		t.Errorf("got %+v", l.queue)
	}
}
