package projectdb

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/fair"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/pgcluster"
)

// TestEvictAsksNoDatabase checks that looking for an idle connection reads the account of no
// project: with many of them, each new connection would wait for as many statements.
func TestEvictAsksNoDatabase(t *testing.T) {
	t.Parallel()

	server, err := pg.PrimaryPoolConfig("postgres://localhost/none", 1)
	if err != nil {
		t.Fatal(err)
	}

	var evicting atomic.Bool
	r := NewRegistry(Config{Server: server, Connections: 8,
		FindAccount: func(_ context.Context, project uuid.UUID) (uuid.UUID, error) {
			if evicting.Load() {
				t.Error("the account of a project was read")
				return uuid.Nil, errors.New("no database")
			}

			return project, nil
		}})

	for range 3 {
		p := r.Open(uuid.New())
		p.open.Add(1)
		p.Key(t.Context())
		p.account.readAt = time.Time{} // out of date
	}

	evicting.Store(true)

	if r.evict(pgcluster.Default, fair.Key{Account: "new", Part: "new"}) {
		t.Error("a connection was closed, but no pool has one")
	}
}
