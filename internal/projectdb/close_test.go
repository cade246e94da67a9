package projectdb_test

import (
	"sync"
	"testing"
	"time"

	"github.com/socle-dev/socle/internal/pgtest"
	"github.com/socle-dev/socle/internal/projectdb"
	"github.com/socle-dev/socle/internal/projectdb/projectdbtest"
)

// TestCloseAll checks that a statement that still runs in one project delays the closing of no
// other project.
func TestCloseAll(t *testing.T) {
	t.Parallel()

	r := projectdbtest.NewRegistry(t, 4)
	projects := []*projectdb.Project{projectdbtest.NewIn(t, r), projectdbtest.NewIn(t, r)}

	for i, busy := range projects {
		other := projects[1-i]
		pgtest.Value[int](t, other.Owner(), "select 1")

		conn, err := busy.Owner().Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}

		var closing sync.WaitGroup
		closing.Go(func() { r.CloseUnused(time.Now().Add(time.Hour)) })
		pgtest.Eventually(t, "the other project is closed", func() bool { return other.OpenConns() == 0 })

		conn.Release()
		closing.Wait()
	}
}
