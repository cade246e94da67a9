package backup

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/audit"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/platform"
)

// Restore restores a backup into a project.
type Restore struct {
	UUID              uuid.UUID  `json:"uuid"`
	BackupUUID        uuid.UUID  `json:"backupUuid"`
	BackupProjectUUID uuid.UUID  `json:"-"`
	ProjectUUID       uuid.UUID  `json:"projectUuid" doc:"Project into which the backup is restored."`
	Target            string     `json:"target" enum:"in_place,new"`
	Status            Status     `json:"status" enum:"pending,running,completed,failed"`
	StartedAt         *time.Time `json:"startedAt" nullable:"true"`
	CompletedAt       *time.Time `json:"completedAt" nullable:"true" doc:"When it completed or failed."`
	Error             string     `json:"error" doc:"Cause of the failure; empty unless failed."`
	KeptUntil         *time.Time `json:"keptUntil" nullable:"true" doc:"Until when the project's former data is kept and undoRestore can bring it back; null: not kept."`
	UndoneAt          *time.Time `json:"undoneAt" nullable:"true" doc:"When the restore was undone; from then on the restored data is kept instead. Null: not undone."`
	Missing           []Missing  `json:"missing" doc:"Objects of the backup that PostgreSQL did not create again, at most 100. A restore into a new project completes without them; one in place fails, unless it allows them."`
	AllowMissing      bool       `json:"-"`
	CreatedAt         time.Time  `json:"createdAt"`
	CreatedBy         uuid.UUID  `json:"createdBy"`
}

// Restore targets.
const (
	IntoPlace = "in_place"
	IntoNew   = "new"
)

const restoreColumns = ` uuid, backup_uuid, backup_project_uuid, project_uuid, target, status, started_at, completed_at, error,
	case when target = 'in_place' then kept_until end as kept_until, undone_at, missing, allow_missing, created_at, created_by `

// replacedRetention is how long a replaced database is kept.
const replacedRetention = 7 * 24 * time.Hour

// NewRestore holds restore parameters.
type NewRestore struct {
	Backup, BackupProject uuid.UUID
	Project               uuid.UUID // the backup's project, or a new one
	Target                string
	AllowMissing          bool // complete in place although objects are missing
}

// createRestore creates a pending restore. It fails with NotFound for an unknown backup, and with
// Conflict if the backup is not completed or the project has an unfinished restore.
func (s *store) createRestore(ctx context.Context, user uuid.UUID, n NewRestore) (Restore, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return Restore{}, err
	}

	// The row lock keeps the backup from being deleted until the restore is visible.
	status, err := pg.Value[Status](ctx, s.q,
		`select status from platform.backups where uuid = @backup and project_uuid = @project for share`,
		pgx.StrictNamedArgs{"backup": n.Backup, "project": n.BackupProject})
	if err != nil {
		return Restore{}, err
	}

	if status != Completed {
		return Restore{}, fault.New(fault.Conflict, "the backup is %s, not completed", status).
			WithCode("backup_not_completed")
	}

	audit.CreatedUUID(ctx, id)

	r, err := pg.One[Restore](ctx, s.q, `
		insert into platform.restores (uuid, backup_uuid, backup_project_uuid, project_uuid, target, allow_missing, created_by)
		values (@id, @backup, @source, @project, @target, @allow, @user)
		returning`+restoreColumns, pgx.StrictNamedArgs{"id": id, "backup": n.Backup,
		"source": n.BackupProject, "project": n.Project,
		"target": n.Target, "allow": n.AllowMissing, "user": user})
	if pg.Violates(err, "restores_one_at_a_time") {
		return r, fault.New(fault.Conflict, "another restore of the project is under way").
			WithCode("restore_under_way").WithCause(err)
	}

	return r, err
}

// GetRestore returns a restore by the project that has the backup. It fails with NotFound for an
// unknown restore.
func (s *store) GetRestore(ctx context.Context, project, id uuid.UUID) (Restore, error) {
	return pg.One[Restore](ctx, s.q,
		`select`+restoreColumns+`from platform.restores where uuid = @id and backup_project_uuid = @project`,
		pgx.StrictNamedArgs{"id": id, "project": project})
}

// ListRestores returns a page of the restores from a project's backups and the total count.
func (s *store) ListRestores(ctx context.Context, project uuid.UUID, page pg.Page) ([]Restore, int64, error) {
	return pg.List[Restore](ctx, s.q, pg.Listing{
		Columns: restoreColumns,
		From:    `platform.restores where backup_project_uuid = @project`,
		Sorts:   map[string]string{"createdAt": "created_at", "completedAt": "completed_at"},
		Tie:     "uuid",
	}, page, pgx.StrictNamedArgs{"project": project})
}

// completeRestore swaps in a restored database and sets the restore to completed, in one
// transaction. renames are the statements that rename both databases. forms are the project's forms
// from now on, version its schema version. A new project's empty database is not kept. It fails
// with NotFound if the restore is not running any more, and with Conflict if the project is not
// active.
func (s *store) completeRestore(
	ctx context.Context, r Restore, forms []uuid.UUID, version int64, renames []string,
) error {
	return s.unaudited(ctx, func(tx *store) error {
		if _, err := pg.Value[uuid.UUID](ctx, tx.q, `
			update platform.restores
			set status = 'completed', completed_at = now(), kept_until = now() + case when @kept then @keep::interval else '0' end
			where uuid = @id and status = 'running' returning uuid`,
			pgx.StrictNamedArgs{"id": r.UUID, "kept": r.Target == IntoPlace, "keep": replacedRetention}); err != nil {
			return err
		}

		return tx.platform.SwapDatabase(ctx, r.ProjectUUID, forms, version, renames)
	})
}

// failRestore sets a restore to failed. reason is for users. It also sets a project that was
// created for the restore to status deleting. It reports false if the restore has already ended,
// and changes nothing then.
func (s *store) failRestore(ctx context.Context, r Restore, reason string) (ok bool, err error) {
	err = s.unaudited(ctx, func(tx *store) error {
		ok, err = tx.restoreTasks().fail(ctx, r.UUID, reason)
		if err != nil || !ok || r.Target != IntoNew {
			return err
		}

		return tx.platform.AbandonProject(ctx, r.ProjectUUID)
	})

	return ok, err
}

// undoable returns a restore that can be undone. It fails with NotFound for an unknown
// restore, and with Conflict if the replaced database is not kept or the restore was already
// undone.
func (s *store) undoable(ctx context.Context, project, id uuid.UUID) (Restore, error) {
	r, err := s.GetRestore(ctx, project, id)
	switch {
	case err != nil:
		return r, err
	case r.KeptUntil == nil:
		return r, fault.New(fault.Conflict, "the data from before this restore is not kept").WithCode("nothing_kept")
	case r.UndoneAt != nil:
		return r, fault.New(fault.Conflict, "this restore was already undone").
			WithCode("already_undone")
	}

	return r, nil
}

// recordUndo swaps the replaced database back in and records it, as [store.completeRestore] does.
// It fails with Conflict if the replaced database is not kept any more.
func (s *store) recordUndo(
	ctx context.Context, r Restore, forms []uuid.UUID, version int64, renames []string,
) (Restore, error) {
	return pg.InTxValue(ctx, s.inTx, func(tx *store) (Restore, error) {
		undone, err := pg.One[Restore](ctx, tx.q, `
			update platform.restores set undone_at = now(), kept_until = now() + @keep::interval
			where uuid = @id and kept_until > now() and undone_at is null
			returning`+restoreColumns, pgx.StrictNamedArgs{"id": r.UUID, "keep": replacedRetention})
		if fault.Is(err, fault.NotFound) {
			return r, fault.New(fault.Conflict, "the data from before this restore is no longer kept").
				WithCode("nothing_kept").WithCause(err)
		}
		if err != nil {
			return r, err
		}

		return undone, tx.platform.SwapDatabase(ctx, r.ProjectUUID, forms, version, renames)
	})
}

// undoableProjects returns the active projects for which a replaced database is kept.
func (s *store) undoableProjects(ctx context.Context) ([]uuid.UUID, error) {
	return pg.Values[uuid.UUID](ctx, s.q, `
		select distinct p.uuid from platform.restores r join platform.projects p on p.uuid = r.project_uuid
		where r.kept_until is not null and p.status = 'active'`)
}

// ExpireReplaced ends the retention for the database that a restore has replaced. It fails with
// NotFound for an unknown restore, and with Conflict if no database is kept.
func (s *store) ExpireReplaced(ctx context.Context, project, id uuid.UUID) (Restore, error) {
	return pg.InTxValue(ctx, s.inTx, func(tx *store) (Restore, error) {
		r, err := pg.One[Restore](ctx, tx.q, `
			update platform.restores set kept_until = now()
			where uuid = @id and backup_project_uuid = @project and target = 'in_place' and kept_until is not null
			returning`+restoreColumns, pgx.StrictNamedArgs{"id": id, "project": project})
		if !fault.Is(err, fault.NotFound) {
			return r, err
		}

		if _, err := tx.GetRestore(ctx, project, id); err != nil {
			return r, err
		}

		return r, fault.New(fault.Conflict, "the data from before this restore is not kept").
			WithCode("nothing_kept").WithCause(err)
	})
}

// expiredRestores returns the restores whose replaced database has passed its retention.
func (s *store) expiredRestores(ctx context.Context) ([]Restore, error) {
	return pg.All[Restore](ctx, s.q, `select`+restoreColumns+`from platform.restores where kept_until < now()`)
}

// isExpired reports whether the database that a restore replaced has passed its retention.
func (s *store) isExpired(ctx context.Context, id uuid.UUID) (bool, error) {
	return pg.Value[bool](ctx, s.q,
		`select exists (select from platform.restores where uuid = @id and kept_until < now())`,
		pgx.StrictNamedArgs{"id": id})
}

// markReplacedDropped records that the database that a restore had replaced is dropped.
func (s *store) markReplacedDropped(ctx context.Context, id uuid.UUID) error {
	_, err := pg.Exec(ctx, s.q, `update platform.restores set kept_until = null where uuid = @id`,
		pgx.StrictNamedArgs{"id": id})
	return err
}

// restoredProjects returns the projects with an unfinished restore or a kept replaced database.
// They have bytes that their current database does not know.
func (s *store) restoredProjects(ctx context.Context) ([]uuid.UUID, error) {
	return pg.Values[uuid.UUID](ctx, s.q, `
		select distinct project_uuid from platform.restores where kept_until is not null or status in ('pending', 'running')`)
}

// undoTimeout limits undoing a failed request.
const undoTimeout = 30 * time.Second

// restoreArgs identify the restore to run.
type restoreArgs struct {
	Restore uuid.UUID `json:"restore"`
	Project uuid.UUID `json:"project"`
}

// Kind returns the job kind.
func (restoreArgs) Kind() string { return "restore" }

// RequestRestore enqueues a restore that replaces the project's content. It fails like
// [store.createRestore].
func (s *Service) RequestRestore(
	ctx context.Context, project, id, user uuid.UUID, allowMissing bool,
) (Restore, error) {
	var r Restore
	err := s.inTx(ctx, func(tx *store) error {
		var err error
		r, err = s.requestRestore(ctx, tx, user, NewRestore{
			Backup:        id,
			BackupProject: project,
			Project:       project,
			Target:        IntoPlace,
			AllowMissing:  allowMissing,
		})
		return err
	})

	return r, err
}

// RequestRestoreAs creates a project and enqueues a restore of another project's backup into it. It
// fails like [store.createRestore] and [lifecycle.Service.Create], and then leaves no new
// project.
func (s *Service) RequestRestoreAs(
	ctx context.Context, project, id, user uuid.UUID, name string,
) (Restore, error) {
	source, err := s.platform.GetProject(ctx, project)
	if err != nil {
		return Restore{}, err
	}

	b, err := s.Get(ctx, project, id)
	if err != nil {
		return Restore{}, err
	}

	if err := checkCompleted(b); err != nil {
		return Restore{}, err
	}

	var r Restore
	target := platform.NewProject{Organization: source.OrganizationUUID, Name: name, Description: source.Description}

	// Create the restore in the same transaction: if it never starts, the cleanup for stale
	// restores removes the project.
	target.With = func(tx *platform.Store, p platform.Project) error {
		var err error
		r, err = newStore(tx).createRestore(ctx, user, NewRestore{
			Backup:        id,
			BackupProject: project,
			Project:       p.UUID,
			Target:        IntoNew,
		})
		return err
	}
	if _, err = s.Lifecycle.Create(ctx, user, target); err == nil {
		_, err = s.Queue.Insert(ctx, restoreArgs{r.UUID, r.ProjectUUID})
	}

	if err == nil || r.UUID == uuid.Nil {
		return r, err
	}

	undoCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTimeout)
	defer cancel()

	_, undoErr := s.failRestore(undoCtx, r, "the project could not be created")
	return r, errors.Join(err, undoErr, s.Lifecycle.Finish(undoCtx))
}

func (s *Service) requestRestore(
	ctx context.Context, tx *store, user uuid.UUID, n NewRestore,
) (Restore, error) {
	r, err := tx.createRestore(ctx, user, n)
	if err != nil {
		return r, err
	}

	_, err = s.Queue.InsertTx(ctx, tx.tx(), restoreArgs{r.UUID, r.ProjectUUID})
	return r, err
}
