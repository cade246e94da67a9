package server

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/socle-dev/socle/internal/httpx"
	"github.com/socle-dev/socle/internal/pgtest"
	"github.com/socle-dev/socle/internal/platform"
)

// BenchmarkNote measures the cost of logging to a request.
func BenchmarkNote(b *testing.B) {
	l := newRequestLog(nil, slog.New(slog.DiscardHandler))

	a := httpx.Finished{Request: &httpx.Request{ID: uuid.Must(uuid.NewV7()).String(), Start: time.Now(),
		Project: uuid.Must(uuid.NewV7()), Key: uuid.Must(uuid.NewV7()),
		Route: "/projects/{projectUUID}/rest/v1", Client: netip.MustParseAddr("203.0.113.7")},
		Method: "GET", Status: 404}

	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			l.add(a)
			l.mu.Lock()

			if len(l.queue) >= maxQueuedRequests/2 {
				l.queue = l.queue[:0]
			}

			l.mu.Unlock()
		}
	})
}

// BenchmarkAddRequests measures the cost of writing a thousand requests, to the writer and to
// PostgreSQL.
func BenchmarkAddRequests(b *testing.B) {
	pool, err := pgxpool.New(b.Context(), pgtest.Clone(b, "platform", func(ctx context.Context, url string) error {
		conn, err := pgx.Connect(ctx, url)
		if err != nil {
			return err
		}

		return errors.Join(platform.Migrate(ctx, conn), conn.Close(ctx))
	}))
	if err != nil {
		b.Fatal(err)
	}
	defer pool.Close()

	store, batch, client := platform.New(pool), make([]platform.Request, 1000), "203.0.113.7"
	for b.Loop() {
		for i := range batch {
			batch[i] = platform.Request{UUID: uuid.Must(uuid.NewV7()), Project: uuid.UUID{15: byte(i)},
				At: time.Now(), Method: "GET",
				Route: "/projects/{projectUUID}/rest/v1", Status: 200, Duration: 700, Caller: "key", Client: &client}
		}

		if err := store.AddRequests(b.Context(), batch); err != nil {
			b.Fatal(err)
		}
	}
}
