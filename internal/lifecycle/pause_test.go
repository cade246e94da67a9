package lifecycle_test

import (
	"context"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/lifecycle"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/pgcluster"
	"github.com/socle-dev/socle/internal/pgtest"
	"github.com/socle-dev/socle/internal/platform"
	"github.com/socle-dev/socle/internal/projectdb"
	"github.com/socle-dev/socle/internal/projectdb/projectdbtest"
)

// consistent returns the status of a project. It fails the test unless the database accepts the
// project's logins exactly if the project is active.
func (i *install) consistent(id uuid.UUID) string {
	i.t.Helper()

	status, err := i.healthy.Store.ProjectStatus(i.t.Context(), id)
	if err != nil {
		i.t.Fatal(err)
	}

	for _, l := range pgcluster.ProjectLogins {
		conn, err := pgx.ConnectConfig(i.t.Context(), i.healthy.Registry.Cluster(id).Config(id, l))
		if err == nil {
			conn.Close(i.t.Context())
		}

		if (status == platform.Active && err != nil) || (status != platform.Active && pg.State(err) != "53300") {
			i.t.Errorf("project %s: login %q got %v", status, l, err)
		}
	}

	return status
}

// TestStatesInterrupted interrupts each change of a project's status after a growing number of
// writes. The next start completes or undoes it.
func TestStatesInterrupted(t *testing.T) {
	t.Parallel()

	for name, change := range map[string]struct {
		prepare, run func(l *lifecycle.Service, id, user uuid.UUID) error
		from, to     string
	}{
		"pause":   {nil, pause, platform.Active, platform.Paused},
		"resume":  {pause, resume, platform.Paused, platform.Active},
		"delete":  {nil, softDelete, platform.Active, platform.Deleted},
		"restore": {softDelete, restore, platform.Deleted, platform.Active},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			i := newInstall(t)
			p, err := i.create(t.Context(), i.healthy)
			if err != nil {
				t.Fatal(err)
			}

			if _, err := i.healthy.Registry.Open(p.UUID).Owner().Exec(t.Context(),
				"create table public.kept ()"); err != nil {
				t.Fatal(err)
			}

			status := i.consistent(p.UUID)
			for writes, whole := 1, false; !whole; writes += stride {
				if status != change.from {
					back := map[string]func(*lifecycle.Service, uuid.UUID, uuid.UUID) error{
						platform.Paused: resume, platform.Deleted: restore, platform.Active: change.prepare,
					}
					if err := back[status](i.healthy, p.UUID, i.user); err != nil {
						t.Fatal(err)
					}
				}

				i.cut.after(writes)
				err := change.run(i.failing, p.UUID, i.user)
				whole = !i.cut.isCut()
				i.cut.heal()

				if whole && err != nil {
					t.Fatalf("without a cut: %v", err)
				}

				i.finish()

				switch status = i.consistent(p.UUID); {
				case status != change.from && status != change.to:
					t.Errorf("cut after %d writes: got status %s", writes, status)
				case err == nil && status != change.to:
					t.Errorf("cut after %d writes: success, but got status %s", writes, status)
				}
			}

			if status != platform.Active {
				if err := map[string]func(*lifecycle.Service, uuid.UUID, uuid.UUID) error{
					platform.Paused: resume, platform.Deleted: restore,
				}[change.to](i.healthy, p.UUID, i.user); err != nil {
					t.Fatal(err)
				}
			}

			pgtest.Value[int](t, i.healthy.Registry.Open(p.UUID).Owner(), "select count(*)::int from public.kept")
		})
	}
}

func pause(l *lifecycle.Service, id, user uuid.UUID) error {
	_, err := l.Pause(context.Background(), id, user)
	return err
}

func resume(l *lifecycle.Service, id, user uuid.UUID) error {
	_, err := l.Resume(context.Background(), id, user)
	return err
}

func softDelete(l *lifecycle.Service, id, user uuid.UUID) error {
	_, err := l.Delete(context.Background(), id, user)
	return err
}

func restore(l *lifecycle.Service, id, user uuid.UUID) error {
	_, err := l.Restore(context.Background(), id, user)
	return err
}

// TestExpireAtOnce purges an expired project on four servers at once, while its owner restores it.
// The project must be either removed or complete.
func TestExpireAtOnce(t *testing.T) {
	t.Parallel()

	i := newInstall(t)
	for range 5 {
		p, err := i.create(t.Context(), i.healthy)
		if err != nil {
			t.Fatal(err)
		}

		if err := softDelete(i.healthy, p.UUID, i.user); err != nil {
			t.Fatal(err)
		}

		i.exec(`update platform.projects set deleted_at = now() - interval '1 year' where status = 'deleted'`)
		done := make(chan error)
		for range 4 {
			go func() { done <- i.healthy.Finish(context.Background()) }()
		}

		err = restore(i.healthy, p.UUID, i.user)
		for range 4 {
			if err := <-done; err != nil {
				t.Errorf("finish: %v", err)
			}
		}

		if err != nil && !fault.Is(err, fault.Conflict) {
			t.Errorf("restore: %v", err)
		}

		if err == nil {
			if _, err := i.healthy.Remove(t.Context(), p.UUID, i.user); err != nil {
				t.Fatalf("open the restored project: %v", err)
			}
		}

		i.finish()
		i.check(p.UUID)

		if left := i.projects(); len(left) > 0 {
			t.Fatalf("got %d projects, want 0", len(left))
		}
	}
}

// TestPausedOwnership checks that privileges granted by a paused project to the logins of another
// do not prevent the removal of the latter.
func TestPausedOwnership(t *testing.T) {
	t.Parallel()

	i := newInstall(t)
	granter, err := i.create(t.Context(), i.healthy)
	if err != nil {
		t.Fatal(err)
	}

	other, err := i.healthy.Create(t.Context(), i.user,
		platform.NewProject{Organization: i.organization, Name: "other"})
	if err != nil {
		t.Fatal(err)
	}

	registry := i.healthy.Registry
	pgtest.Exec(t, projectdbtest.Connect(t, registry.Open(granter.UUID), pgcluster.Trusted), // as owners could once
		"create table public.shared (); grant select on public.shared to "+pg.Quote(registry.OwnerLogin(other.UUID)))

	if err := pause(i.healthy, granter.UUID, i.user); err != nil {
		t.Fatal(err)
	}
	if _, err := i.healthy.Remove(t.Context(), other.UUID, i.user); err != nil {
		t.Errorf("remove: %v", err)
	}

	i.consistent(granter.UUID)
}

// TestUpgradePaused checks that an upgrade skips a paused project, which is migrated when it is
// resumed.
func TestUpgradePaused(t *testing.T) {
	t.Parallel()

	i := newInstall(t)
	p, err := i.create(t.Context(), i.healthy)
	if err != nil {
		t.Fatal(err)
	}

	if err := pause(i.healthy, p.UUID, i.user); err != nil {
		t.Fatal(err)
	}

	conn := pgtest.Connect(t, i.healthy.Registry.Platform().PlatformConfig())
	if _, err := conn.Exec(t.Context(), `update platform.projects set schema_version = 0`); err != nil {
		t.Fatal(err)
	}

	i.finish()

	if got := i.consistent(p.UUID); got != platform.Paused {
		t.Errorf("got status %s after the upgrade, want paused", got)
	}

	if err := resume(i.healthy, p.UUID, i.user); err != nil {
		t.Fatal(err)
	}

	if got := pgtest.Value[int64](t, conn, `select schema_version from platform.projects`); got != projectdb.Version() {
		t.Errorf("got migration %d after resuming, want %d", got, projectdb.Version())
	}
}
