package server

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/socle-dev/socle/internal/httpx"
	"github.com/socle-dev/socle/internal/platform"
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
	l := newRequestLog(platform.New(pool), slog.New(slog.NewTextHandler(&text, nil)))
	id, project := uuid.Must(uuid.NewV7()), uuid.Must(uuid.NewV7())

	note := func() {
		l.add(httpx.Finished{
			Request: &httpx.Request{ID: id.String(), Start: time.Now(), Project: project, Route: "GET /tables"},
			Method:  "GET",
			Status:  404,
		})
	}

	for range maxQueuedRequests + 5 {
		note()
	}

	if len(l.queue) != maxQueuedRequests || l.dropped != 5 {
		t.Errorf("got %d queued and %d dropped, want %d and 5", len(l.queue), l.dropped, maxQueuedRequests)
	}

	l.add(httpx.Finished{Request: &httpx.Request{ID: id.String()}}) // not to a project

	if l.dropped != 5 {
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

	if err := l.run(ended); err != nil {
		t.Error(err)
	}

	if got := text.String(); !strings.Contains(got, "dropped=2") {
		t.Errorf("the final warning is missing:\n%s", got)
	}
}

// TestKeptRequests checks that a sample of many successful requests and all failed ones are kept.
func TestKeptRequests(t *testing.T) {
	t.Parallel()

	l := newRequestLog(nil, slog.New(slog.DiscardHandler))
	busy, quiet := uuid.Must(uuid.NewV7()), uuid.Must(uuid.NewV7())

	note := func(project uuid.UUID, status int) {
		l.add(httpx.Finished{
			Request: &httpx.Request{ID: uuid.Must(uuid.NewV7()).String(), Start: time.Now(), Project: project},
			Method:  "GET",
			Status:  status,
		})
	}

	for range maxLoggedSuccesses + 10 {
		note(busy, 200)
	}

	for _, status := range []int{400, 500, 0} {
		note(busy, status)
	}

	note(quiet, 200)

	if len(l.queue) != maxLoggedSuccesses+4 || l.dropped != 0 {
		t.Errorf("got %d queued and %d dropped, want %d and 0", len(l.queue), l.dropped, maxLoggedSuccesses+4)
	}
}

func TestPatternOfRoute(t *testing.T) {
	t.Parallel()

	for route, want := range map[string]string{"GET /tables": "/tables", "/rest/v1": "/rest/v1", "": "", "a": "a"} {
		if got := stripMethod(route); got != want {
			t.Errorf("%q: got %q, want %q", route, got, want)
		}
	}
}
