package outbox_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/outbox"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/pgcluster"
	"github.com/socle-dev/socle/internal/pgtest"
	"github.com/socle-dev/socle/internal/platform"
	"github.com/socle-dev/socle/internal/platform/platformtest"
	"github.com/socle-dev/socle/internal/projectdb"
	"github.com/socle-dev/socle/internal/projectdb/projectdbtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// desk is a project whose SQL leaves numbers as work, and what was done of it.
type desk struct {
	*testing.T
	install platformtest.Install
	project *projectdb.Project

	mu       sync.Mutex
	done     []int
	failures int // runs that fail next
	onRun    func()
}

func newDesk(t *testing.T) *desk {
	t.Helper()

	d := &desk{T: t, install: platformtest.New(t), project: projectdbtest.New(t), onRun: func() {}}
	d.install.Exec(`insert into platform.projects (uuid, organization_uuid, name, status, created_by, updated_by)
		values ($1, $2, 'desk', 'active', $3, $3)`, d.project.UUID, d.install.Organization, d.install.User)
	pgtest.Exec(t, projectdbtest.Connect(t, d.project, pgcluster.Trusted), `create table socle.numbers (n int)`)

	return d
}

// open returns an outbox with the numbers as its one kind.
func (d *desk) open() *outbox.Outbox {
	o := outbox.New(outbox.Config{Projects: projectdbtest.Registry(d), Store: (&platform.Store{}).In(d.install.DB),
		Log: slog.New(slog.DiscardHandler), Kinds: []outbox.Kind{
			{Name: "none", Pending: "false", Run: func(context.Context, *projectdb.Project) error {
				d.Error("a kind without work was run")
				return nil
			}},
			{Name: "numbers", Pending: "exists(select from socle.numbers)", Run: d.run},
		}})
	d.Cleanup(o.Close)

	return o
}

func (d *desk) run(ctx context.Context, p *projectdb.Project) error {
	d.mu.Lock()
	defer d.mu.Unlock()

	if d.failures > 0 {
		d.failures--
		return errors.New("no paper")
	}

	numbers, err := pg.Values[int](ctx, p.Trusted(), `delete from socle.numbers returning n`)
	d.done = append(d.done, numbers...)
	d.onRun()

	return err
}

// leave leaves a number, as a transaction of the project.
func (d *desk) leave(n int) {
	d.Helper()

	if _, err := pg.Exec(d.Context(), d.project.Trusted(), `insert into socle.numbers values ($1)`, n); err != nil {
		d.Error(err)
	}
}

func (d *desk) wantDone(want ...int) {
	d.Helper()

	pgtest.Eventually(d, "the work is done", func() bool {
		d.mu.Lock()
		defer d.mu.Unlock()

		return slices.Equal(d.done, want)
	})
}

// TestWritten: what a transaction has left is done after the report of its write, also what is
// written while a run is under way, and what a run has failed to do.
func TestWritten(t *testing.T) {
	t.Parallel()

	d := newDesk(t)
	o := d.open()

	d.leave(1)
	o.Written(d.project.UUID)
	d.wantDone(1)

	d.leave(2)
	o.Written(d.project.UUID)
	d.wantDone(1, 2)

	d.mu.Lock()
	d.onRun = sync.OnceFunc(func() { d.leave(4); o.Written(d.project.UUID) })
	d.failures = 1
	d.mu.Unlock()

	d.leave(3)
	o.Written(d.project.UUID)
	d.wantDone(1, 2, 3, 4)
}

// TestPanic: work that panics ends nothing but its run, and is tried again.
func TestPanic(t *testing.T) {
	t.Parallel()

	d := newDesk(t)
	var once sync.Once
	d.onRun = func() { once.Do(func() { panic("torn paper") }) }
	o := d.open()

	d.leave(1)
	o.Written(d.project.UUID)
	d.wantDone(1)

	d.leave(2)
	o.Written(d.project.UUID)
	d.wantDone(1, 2)
}

// TestLostProjects: a project that is gone or unknown ends its own looks and delays no other.
func TestLostProjects(t *testing.T) {
	t.Parallel()

	d := newDesk(t)
	o := d.open()

	for range 20 {
		o.Written(uuid.New())
	}
	d.leave(1)
	o.Written(d.project.UUID)
	d.wantDone(1)

	o.Close()
	o.Written(d.project.UUID) // starts nothing
}

// TestSweep: what a killed server has left is done by a later one, if the project had left work
// before.
func TestSweep(t *testing.T) {
	t.Parallel()

	d := newDesk(t)
	killed := d.open()
	d.leave(1)
	killed.Written(d.project.UUID)
	d.wantDone(1)
	killed.Close()

	d.leave(2)
	o := d.open()
	for range 2 { // the second one is not due
		if err := o.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	d.wantDone(1, 2)

	paused := d.open()
	d.install.SetStatus(d.project.UUID, "paused")
	d.leave(3)
	if err := paused.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	d.wantDone(1, 2)
}
