package requestlog

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

// BenchmarkRecord measures the cost of logging to a request.
func BenchmarkRecord(b *testing.B) {
	l := NewRecorder(nil, slog.New(slog.DiscardHandler))

	a := httpx.Finished{Request: &httpx.Request{ID: uuid.Must(uuid.NewV7()).String(), Start: time.Now(),
		Project: uuid.Must(uuid.NewV7()), Key: uuid.Must(uuid.NewV7()),
		Route: "/projects/{projectUUID}/rest/v1", Interface: rowsPrefix, Target: "/titles",
		Client: netip.MustParseAddr("203.0.113.7")},
		Method: "GET", Status: 404}

	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			l.Record(a)
			l.mu.Lock()

			if len(l.queue) >= maxQueued/2 {
				l.queue = l.queue[:0]
			}

			l.mu.Unlock()
		}
	})
}

// BenchmarkAdd measures the cost of writing a thousand requests, to the writer and to
// PostgreSQL.
func BenchmarkAdd(b *testing.B) {
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

	db, batch, client := platform.NewDB(pool), make([]record, 1000), netip.MustParseAddr("203.0.113.7")
	for b.Loop() {
		for i := range batch {
			batch[i] = record{uuid: uuid.Must(uuid.NewV7()), project: uuid.UUID{15: byte(i)}, at: time.Now(),
				method: "GET",
				route:  "/projects/{projectUUID}/rest/v1", prefix: rowsPrefix, target: "/titles", status: 200,
				query: "author=eq.Austen&select=id%2Ctitle&order=title", took: time.Millisecond, role: "anon",
				key: uuid.Must(uuid.NewV7()), client: client, agent: "benchmark"}
		}

		if err := appendRecords(b.Context(), db, batch); err != nil {
			b.Fatal(err)
		}
	}
}
