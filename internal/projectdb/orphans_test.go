package projectdb_test

import (
	"context"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/pgcluster"
	"github.com/socle-dev/socle/internal/pgtest"
	"github.com/socle-dev/socle/internal/projectdb"
	"github.com/socle-dev/socle/internal/projectdb/projectdbtest"
)

// TestOrphans terminates the sessions of a killed server.
func TestOrphans(t *testing.T) {
	t.Parallel()

	// Use a separate platform database: servers of other tests share theirs.
	r := openAt(t, pgtest.URL(t))
	platform, err := pgxpool.New(t.Context(), r.Platform().PlatformConfig().ConnString())
	if err != nil {
		t.Fatal(err)
	}
	defer platform.Close()

	p, foreign := projectdbtest.NewIn(t, r), projectdbtest.NewIn(t, r)
	left, theirs := projectdbtest.Connect(t, p, pgcluster.Owner), projectdbtest.Connect(t, foreign, pgcluster.Owner)
	choose := func(_ context.Context, projects []uuid.UUID) ([]uuid.UUID, error) { return []uuid.UUID{p.UUID}, nil }

	other := pgtest.Connect(t, r.Platform().PlatformConfig()) // another running server
	pgtest.Value[any](t, other, "select pg_advisory_lock_shared($1, 0)", projectdb.SwapLock)

	if err := r.TerminateOrphans(t.Context(), platform, choose); err != nil {
		t.Fatal(err)
	}

	pgtest.Exec(t, left, "select 1")
	other.Close(t.Context())

	failed := make(chan error)
	go func() {
		_, err := left.Exec(t.Context(), endless)
		failed <- err
	}()

	pgtest.Eventually(t, "the statement runs", func() bool {
		return pgtest.Value[bool](t, p.Trusted(),
			`select exists (select from pg_stat_activity where datname = current_database() and wait_event = 'PgSleep')`)
	})

	if err := r.TerminateOrphans(t.Context(), platform, choose); err != nil {
		t.Fatal(err)
	}

	if err := <-failed; pg.State(err) != "57P01" {
		t.Errorf("the statement of a killed server: got %v", err)
	}

	pgtest.Exec(t, theirs, "select 1")
}
