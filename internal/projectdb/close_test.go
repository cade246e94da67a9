package projectdb

import (
	"sync"
	"testing"
	"time"
)

// TestCloseAll checks that a statement that still runs in one project delays the closing of no
// other project.
func TestCloseAll(t *testing.T) {
	t.Parallel()

	r := newRegistry(t, 4)
	projects := []*Project{newProject(t, r), newProject(t, r)}

	for i, busy := range projects {
		other := projects[1-i]
		value[int](t, other.Owner(), "select 1")

		conn, err := busy.Owner().Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}

		var closing sync.WaitGroup
		closing.Go(func() { r.closeUnused(time.Now().Add(time.Hour)) })
		eventually(t, "the other project is closed", func() bool { return other.open.Load() == 0 })

		conn.Release()
		closing.Wait()
	}
}
