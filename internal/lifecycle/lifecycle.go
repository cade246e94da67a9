// Package lifecycle creates, pauses, copies, swaps and removes projects: their rows in the platform
// database, and their databases and logins on a PostgreSQL server.
//
// A project at run time is package projectdb's, the server is package pgcluster's.
package lifecycle

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/audit"
	"github.com/socle-dev/socle/internal/blob"
	"github.com/socle-dev/socle/internal/fair"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/platform"
	"github.com/socle-dev/socle/internal/projectdb"
)

// undoTimeout is the timeout for undoing a failed change, after the request that failed.
const undoTimeout = 30 * time.Second

// Config configures a [Service].
type Config struct {
	Store    *platform.Store
	Registry *projectdb.Registry
	Blobs    *blob.Store
	OnChange func(uuid.UUID) // called after a project was paused, resumed, deleted or restored; nil: nothing
	Log      *slog.Logger
}

// Service creates, pauses and removes projects: a row in the platform database, roles, a database
// and blobs, which no transaction spans. The row holds the state, and every step is idempotent, so
// that [Service.Finish] completes interrupted changes.
type Service struct {
	Databases
	Store *platform.Store
	Blobs *blob.Store

	onChange     func(uuid.UUID)
	provisioning *fair.Pool // projects being created or removed
	log          *slog.Logger
}

const (
	// maxProvisioning is the number of projects created or removed at a time. Each takes two
	// connections to the platform database and some outside the pools.
	maxProvisioning = 4
	maxWaiting      = 1 << 16 // changes that wait for their turn
)

// New returns a service.
func New(c Config) *Service {
	return &Service{Databases: Databases{c.Registry}, Store: c.Store, Blobs: c.Blobs, onChange: c.OnChange,
		provisioning: fair.New(fair.Config{Name: "provisioning", Capacity: maxProvisioning,
			PerAccount: maxProvisioning / 2, Reserve: 1, Waiting: maxWaiting}), log: c.Log}
}

// Pools returns the pools that accounts share, for metrics.
func (s *Service) Pools() []*fair.Pool { return []*fair.Pool{s.provisioning} }

// Create creates a project and returns when it is ready for use. After a failure nothing remains.
// It fails as [platform.Store.CreateProject] does.
func (s *Service) Create(ctx context.Context, user uuid.UUID, n platform.NewProject) (platform.Project, error) {
	p, err := s.Store.CreateProject(ctx, user, n)
	if err != nil {
		return p, err
	}

	err = s.withLock(ctx, p.UUID, pg.LockBlocking, func() error {
		project, err := s.provision(ctx, p.UUID, s.creationSteps())
		if err == nil {
			p = project
			return nil
		}

		undoCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTimeout)
		defer cancel()

		// Only the response to the last step was lost.
		if project, getErr := s.Store.GetProject(undoCtx, p.UUID); getErr == nil {
			p = project
			return nil
		}

		return errors.Join(err, s.undo(undoCtx, p.UUID, user))
	})

	return p, err
}

// undo removes a project after a failed creation. It first marks the project as being removed: the
// last step may have committed, with only the response lost.
func (s *Service) undo(ctx context.Context, id, user uuid.UUID) error {
	if _, err := s.Store.StartPurge(ctx, id, user); err != nil && !fault.Is(err, fault.NotFound) {
		return err
	}
	return s.remove(ctx, id)
}

// Remove removes a project and all its data, whether it was deleted before or not. It fails with
// NotFound if there is no such project.
func (s *Service) Remove(ctx context.Context, id, user uuid.UUID) (platform.Project, error) {
	var p platform.Project
	err := s.Store.InTx(ctx, func(tx *platform.Store) error {
		var err error
		p, err = tx.StartPurge(ctx, id, user)
		return err
	})
	if err != nil {
		return p, err
	}

	return p, s.withLock(ctx, id, pg.LockBlocking, func() error { return s.remove(ctx, id) })
}

// Finish completes interrupted creations, pauses and removals, migrates databases to the newest
// version, and purges projects whose retention after deletion is over. A failure in one project
// does not stop the others.
func (s *Service) Finish(ctx context.Context) error {
	settings, err := s.Store.Settings(ctx)
	if err != nil {
		return err
	}

	changes, err := s.Store.UnfinishedProjects(ctx, projectdb.Version(), settings.DeletedKept())
	if err != nil {
		return err
	}

	var errs []error
	for _, u := range changes {
		err := s.withLock(ctx, u.UUID, pg.LockTry, func() error {
			return s.finish(ctx, u.UUID, settings.DeletedKept())
		})
		if err != nil && !errors.Is(err, errLocked) {
			errs = append(errs, fmt.Errorf("project %s: %w", u.UUID, err))
		}
	}

	errs = append(errs, s.dropRetiredLogin(ctx))
	return errors.Join(errs...)
}

// finish reads the project's state again under the lock and completes the change.
func (s *Service) finish(ctx context.Context, id uuid.UUID, retention time.Duration) error {
	status, err := s.Store.ProjectStatus(ctx, id)
	switch {
	case fault.Is(err, fault.NotFound):
		return nil
	case err != nil:
		return err
	case status == "deleting":
		return s.remove(ctx, id)
	case status == platform.Deleted:
		due, err := s.Store.ExpireProject(s.AsSystem(ctx, audit.RemoveExpiredProject, id), id, retention)
		if err != nil {
			return err
		}

		if due {
			return s.remove(ctx, id)
		}

		return s.closeInactive(ctx, id)
	case status == platform.Paused:
		return s.closeInactive(ctx, id)
	case status == platform.Creating:
		return s.completeCreation(ctx, id)
	}

	_, err = s.provision(ctx, id, s.provisionSteps())
	return err
}

// completeCreation finishes a project's creation after the server died. The audit entry names the
// requesting user and has the request's idempotency key, so that a repeated request finds the
// result.
func (s *Service) completeCreation(ctx context.Context, id uuid.UUID) error {
	c, err := s.Store.ProjectCreation(ctx, id)
	if err != nil {
		return err
	}

	_, err = s.provision(audit.Begin(ctx, s.Registry.AuditKey(),
		audit.Entry{Action: "createProject", Actor: c.User.String(), Project: id.String(), Key: c.RequestKey}),
		id, s.provisionSteps())
	return err
}

// VisitActive calls f with each active project, see [projectdb.Registry.Visit]. A failure in one
// project does not stop the others.
func (s *Service) VisitActive(ctx context.Context, f func(*projectdb.Project) error) error {
	projects, err := s.Store.ActiveProjects(ctx)
	return errors.Join(err, visit(projects, func(id uuid.UUID) error { return s.Registry.Visit(id, f) }))
}

// VisitInactive calls f with each paused or deleted project, see [Service.Maintain].
func (s *Service) VisitInactive(ctx context.Context, f func(*projectdb.Project) error) error {
	projects, err := s.Store.InactiveProjects(ctx)
	return errors.Join(err, visit(projects, func(id uuid.UUID) error { return s.Maintain(ctx, id, f) }))
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
func (s *Service) Maintain(ctx context.Context, id uuid.UUID, f func(*projectdb.Project) error) error {
	return fault.Ignore(s.Registry.WithInactive(ctx, id, f), fault.Conflict)
}

// AsSystem returns a context whose changes are audited as the server's own actions.
func (s *Service) AsSystem(ctx context.Context, action string, project uuid.UUID) context.Context {
	return audit.Begin(ctx, s.Registry.AuditKey(),
		audit.Entry{Action: action, Project: project.String()})
}

func (s *Service) provision(ctx context.Context, id uuid.UUID, steps []provisionStep) (platform.Project, error) {
	err := s.Store.DB().WithConn(ctx, func(conn *pgx.Conn) error {
		return s.runSteps(ctx, conn, id, steps)
	})
	if err != nil {
		return platform.Project{}, err
	}

	return s.Store.ActivateProject(ctx, id, projectdb.Version())
}

func (s *Service) remove(ctx context.Context, id uuid.UUID) error {
	logins, err := s.Destroy(ctx, id)
	if err != nil {
		return err
	}

	if err := s.Store.RetireLogins(ctx, logins); err != nil {
		return err
	}
	if err := s.Blobs.DeleteAll(ctx, "projects/"+id.String()); err != nil {
		return err
	}

	return s.Store.DeletePurgedProject(ctx, id)
}

// errLocked means that another server or goroutine works on the project.
var errLocked = errors.New("the project is locked by another change")

// WithLock runs f under the lock on a whole project, which creation, pause, swap and removal take.
func (s *Service) WithLock(ctx context.Context, id uuid.UUID, f func() error) error {
	return s.withLock(ctx, id, pg.LockBlocking, f)
}

// withLock runs f under the project's lock, which is released at the latest when this process ends.
func (s *Service) withLock(ctx context.Context, id uuid.UUID, lock string, f func() error) error {
	place, err := s.provisioning.Acquire(ctx, s.Registry.Open(id).Key(ctx), 1)
	if err != nil {
		return err
	}
	defer place.Release()

	key := int64(binary.BigEndian.Uint64(id[8:])) // random bits of a UUIDv7
	ok, err := s.Store.DB().WithLock(ctx, lock, key, f)
	if err == nil && !ok {
		return errLocked
	}

	return err
}

// Audit returns a page of the platform's audit log and the number of entries that match the filter.
// Pending entries are chained first.
func (s *Service) Audit(ctx context.Context, f audit.Filter, page pg.Page) ([]audit.Recorded, int64, error) {
	if err := s.ChainAudit(ctx); err != nil {
		return nil, 0, err
	}

	return s.Store.Audit(ctx, f, page)
}

// ChainAudit chains the pending entries of the platform's audit log, see [audit.Chain].
func (s *Service) ChainAudit(ctx context.Context) error {
	return s.Store.ChainAudit(ctx, s.Registry.AuditKey())
}
