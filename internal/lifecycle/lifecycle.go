package projectdb

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/audit"
	"github.com/socle-dev/socle/internal/blob"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/platform"
)

// undoTimeout is the timeout for undoing a failed change, after the request that failed.
const undoTimeout = 30 * time.Second

// Lifecycle creates, pauses and removes projects: a row of the platform database, roles, a database
// and blobs, which no transaction spans. The row holds the state, and every step is idempotent, so
// that [Lifecycle.Finish] completes interrupted changes.
type Lifecycle struct {
	Store    *platform.Store
	Registry *Registry
	Blobs    *blob.Store
	OnChange func(uuid.UUID) // called after a project was paused, resumed, deleted or restored; may be nil
}

// Create creates a project and returns when it is ready for use. After a failure nothing is left of
// it. It fails as [platform.Store.CreateProject] does.
func (l Lifecycle) Create(ctx context.Context, user uuid.UUID, n platform.NewProject) (platform.Project, error) {
	p, err := l.Store.CreateProject(ctx, user, n)
	if err != nil {
		return p, err
	}

	err = l.withLock(ctx, p.UUID, pg.LockBlocking, func() error {
		created, err := l.provision(ctx, p.UUID, l.Registry.creationSteps())
		if err == nil {
			p = created
			return nil
		}

		after, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTimeout)
		defer cancel()

		// Only the response to the last step was lost.
		if created, unknown := l.Store.GetProject(after, p.UUID); unknown == nil {
			p = created
			return nil
		}

		return errors.Join(err, l.undo(after, p.UUID, user))
	})

	return p, err
}

// undo removes a project after its creation failed. It first marks the project as being removed:
// the last step may have committed, with only the response lost.
func (l Lifecycle) undo(ctx context.Context, id, user uuid.UUID) error {
	if _, err := l.Store.StartPurge(ctx, id, user); err != nil && !fault.Is(err, fault.NotFound) {
		return err
	}
	return l.remove(ctx, id)
}

// Remove removes a project and all its data, whether it was deleted before or not. It fails with
// NotFound if there is no such project.
func (l Lifecycle) Remove(ctx context.Context, id, user uuid.UUID) (platform.Project, error) {
	var p platform.Project
	err := l.Store.InTx(ctx, func(tx *platform.Store) error {
		var err error
		p, err = tx.StartPurge(ctx, id, user)
		return err
	})
	if err != nil {
		return p, err
	}

	return p, l.withLock(ctx, id, pg.LockBlocking, func() error { return l.remove(ctx, id) })
}

// Finish completes interrupted creations, pauses and removals, migrates databases to the newest
// version, and purges projects whose retention after deletion is over. A failure in one project
// does not stop the others.
func (l Lifecycle) Finish(ctx context.Context) error {
	settings, err := l.Store.Settings(ctx)
	if err != nil {
		return err
	}

	unfinished, err := l.Store.UnfinishedProjects(ctx, Version(), settings.DeletedKept())
	if err != nil {
		return err
	}

	var errs []error
	for _, u := range unfinished {
		err := l.withLock(ctx, u.UUID, pg.LockTry, func() error {
			return l.finish(ctx, u.UUID, settings.DeletedKept())
		})
		if err != nil && !errors.Is(err, errLocked) {
			errs = append(errs, fmt.Errorf("project %s: %w", u.UUID, err))
		}
	}

	errs = append(errs, l.dropRetiredLogin(ctx))
	return errors.Join(errs...)
}

// finish reads the state of the project again under its lock and completes the change.
func (l Lifecycle) finish(ctx context.Context, id uuid.UUID, retention time.Duration) error {
	status, err := l.Store.ProjectStatus(ctx, id)
	switch {
	case fault.Is(err, fault.NotFound):
		return nil
	case err != nil:
		return err
	case status == "deleting":
		return l.remove(ctx, id)
	case status == platform.Deleted:
		expired, err := l.Store.ExpireProject(l.AsSystem(ctx, "removeExpiredProject", id), id, retention)
		if err != nil {
			return err
		}

		if expired {
			return l.remove(ctx, id)
		}

		return l.closeInactive(ctx, id)
	case status == platform.Paused:
		return l.closeInactive(ctx, id)
	case status == platform.Creating:
		return l.completeCreation(ctx, id)
	}

	_, err = l.provision(ctx, id, l.Registry.provisionSteps())
	return err
}

// completeCreation finishes the creation of a project whose server died. The audit entry names the
// requesting user and has the idempotency key of the request, so that a repeated request finds the
// result.
func (l Lifecycle) completeCreation(ctx context.Context, id uuid.UUID) error {
	c, err := l.Store.ProjectCreation(ctx, id)
	if err != nil {
		return err
	}

	_, err = l.provision(audit.Begin(ctx, l.Registry.auditKey(),
		audit.Entry{Action: "createProject", Actor: c.User.String(), Project: id.String(), Key: c.RequestKey}),
		id, l.Registry.provisionSteps())
	return err
}

// VisitActive calls f with each active project, see [Registry.Visit]. A failure in one project does
// not stop the others.
func (l Lifecycle) VisitActive(ctx context.Context, f func(*Project) error) error {
	projects, err := l.Store.ActiveProjects(ctx)
	return errors.Join(err, visit(projects, func(id uuid.UUID) error { return l.Registry.Visit(id, f) }))
}

// VisitInactive calls f with each paused or deleted project, see [Lifecycle.Maintain].
func (l Lifecycle) VisitInactive(ctx context.Context, f func(*Project) error) error {
	projects, err := l.Store.InactiveProjects(ctx)
	return errors.Join(err, visit(projects, func(id uuid.UUID) error { return l.Maintain(ctx, id, f) }))
}

func visit(projects []uuid.UUID, f func(uuid.UUID) error) error {
	var errs []error
	for _, id := range projects {
		if err := f(id); err != nil {
			errs = append(errs, fmt.Errorf("project %s: %w", id, err))
		}
	}

	return errors.Join(errs...)
}

// Maintain calls f with a paused or deleted project. It skips a project with pending migrations,
// which run when the project resumes.
func (l Lifecycle) Maintain(ctx context.Context, id uuid.UUID, f func(*Project) error) error {
	return fault.Ignore(l.Registry.WithInactive(ctx, id, f), fault.Conflict)
}

// AsSystem returns a context whose changes are audited as actions of the server itself.
func (l Lifecycle) AsSystem(ctx context.Context, action string, project uuid.UUID) context.Context {
	return audit.Begin(ctx, l.Registry.auditKey(),
		audit.Entry{Action: action, Project: project.String()})
}

func (l Lifecycle) provision(ctx context.Context, id uuid.UUID, steps []provisionStep) (platform.Project, error) {
	err := l.Store.DB().WithConn(ctx, func(conn *pgx.Conn) error {
		return l.Registry.provision(ctx, conn, id, steps)
	})
	if err != nil {
		return platform.Project{}, err
	}

	return l.Store.ActivateProject(ctx, id, Version())
}

func (l Lifecycle) remove(ctx context.Context, id uuid.UUID) error {
	retired, err := l.Registry.Destroy(ctx, id)
	if err != nil {
		return err
	}

	if err := l.Store.RetireLogins(ctx, retired); err != nil {
		return err
	}
	if err := l.Blobs.DeleteAll(ctx, "projects/"+id.String()); err != nil {
		return err
	}

	return l.Store.DeletePurgedProject(ctx, id)
}

// errLocked means that another server or goroutine works on the project.
var errLocked = errors.New("the project is locked by another change")

// WithLock runs f under the lock of a project as a whole, which creation, pause, swap and removal
// take.
func (l Lifecycle) WithLock(ctx context.Context, id uuid.UUID, f func() error) error {
	return l.withLock(ctx, id, pg.LockBlocking, f)
}

// withLock runs f under the project's lock, which is released at the latest when this process ends.
func (l Lifecycle) withLock(ctx context.Context, id uuid.UUID, lock string, f func() error) error {
	place, err := l.Registry.provisioning.Acquire(ctx, l.Registry.Open(id).Key(ctx), 1)
	if err != nil {
		return err
	}
	defer place.Release()

	key := int64(binary.BigEndian.Uint64(id[8:])) // random bits of a UUIDv7
	acquired, err := l.Store.DB().WithLock(ctx, lock, key, f)
	if err == nil && !acquired {
		return errLocked
	}

	return err
}
