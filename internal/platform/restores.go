package platform

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"socle/internal/audit"
	"socle/internal/fault"
	"socle/internal/pg"
)

// Restore is the restoring of a backup.
type Restore struct {
	UUID              uuid.UUID  `json:"uuid"`
	BackupUUID        uuid.UUID  `json:"backupUuid"`
	BackupProjectUUID uuid.UUID  `json:"-"`
	ProjectUUID       uuid.UUID  `json:"projectUuid" doc:"The project that is restored into."`
	Target            string     `json:"target" enum:"in_place,new"`
	Status            string     `json:"status" enum:"pending,running,completed,failed"`
	StartedAt         *time.Time `json:"startedAt" nullable:"true"`
	CompletedAt       *time.Time `json:"completedAt" nullable:"true" doc:"When it was completed or failed."`
	Error             string     `json:"error" doc:"Why it failed; empty unless it did."`
	KeptUntil         *time.Time `json:"keptUntil" nullable:"true" doc:"Until when what the project held before is kept, and undoRestore goes back to it; null if it is not."`
	UndoneAt          *time.Time `json:"undoneAt" nullable:"true" doc:"When the project went back to what it held before; from then on, what was restored is what is kept. Null if it did not."`
	CreatedAt         time.Time  `json:"createdAt"`
	CreatedBy         uuid.UUID  `json:"createdBy"`
}

// What a backup is restored into.
const (
	IntoPlace = "in_place"
	IntoNew   = "new"
)

const restoreColumns = ` uuid, backup_uuid, backup_project_uuid, project_uuid, target, status, started_at, completed_at, error,
	case when target = 'in_place' then kept_until end as kept_until, undone_at, created_at, created_by `

// NewRestore says what is restored into what.
type NewRestore struct {
	Backup, BackupProject uuid.UUID
	Project               uuid.UUID // the backup's, or a new one
	Target                string
}

// CreateRestore notes a restore that is to be carried out. It fails with NotFound if there is no such backup, and with Conflict if
// that is not completed or the project has a restore under way.
func (s *Store) CreateRestore(ctx context.Context, user uuid.UUID, n NewRestore) (Restore, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return Restore{}, err
	}

	// The lock keeps the backup from being deleted before the restore is there to be seen.
	status, err := pg.Value[string](ctx, s.q,
		`select status from platform.backups where uuid = @backup and project_uuid = @project for share`,
		pgx.StrictNamedArgs{"backup": n.Backup, "project": n.BackupProject})
	if err != nil {
		return Restore{}, err
	}

	if status != "completed" {
		return Restore{}, fault.New(fault.Conflict, "the backup is not completed but %s", status).
			WithCode("backup_not_completed")
	}

	audit.CreatedUUID(ctx, id)

	r, err := pg.One[Restore](ctx, s.q, `
		insert into platform.restores (uuid, backup_uuid, backup_project_uuid, project_uuid, target, created_by)
		values (@id, @backup, @source, @project, @target, @user)
		returning`+restoreColumns, pgx.StrictNamedArgs{"id": id, "backup": n.Backup,
		"source": n.BackupProject, "project": n.Project,
		"target": n.Target, "user": user})
	if pg.Violates(err, "restores_one_at_a_time") {
		return r, fault.New(fault.Conflict, "another restore of the project is under way").
			WithCode("restore_under_way").Because(err)
	}

	return r, err
}

// GetRestore returns a restore of a backup of a project. It fails with NotFound if there is none.
func (s *Store) GetRestore(ctx context.Context, project, id uuid.UUID) (Restore, error) {
	return pg.One[Restore](ctx, s.q,
		`select`+restoreColumns+`from platform.restores where uuid = @id and backup_project_uuid = @project`,
		pgx.StrictNamedArgs{"id": id, "project": project})
}

// replacedKept is how long a database is kept that a restored one took the place of.
const replacedKept = 7 * 24 * time.Hour

// CompleteRestore puts a restored database in its place and says so, in one transaction: by the statements that rename the two, with which
// forms the project has from now on, and which migration. The empty database of a new project is kept by nobody's wish, and to be dropped. It fails with NotFound if someone has given the restore up, and with Conflict if the
// project is not active any more.
func (s *Store) CompleteRestore(
	ctx context.Context, r Restore, forms []uuid.UUID, version int64, renames []string,
) error {
	return pg.InTx(ctx, s.b, func(tx pgx.Tx) error {
		if _, err := pg.Value[uuid.UUID](ctx, tx, `
			update platform.restores
			set status = 'completed', completed_at = now(), kept_until = now() + case when @kept then @keep::interval else '0' end
			where uuid = @id and status = 'running' returning uuid`,
			pgx.StrictNamedArgs{"id": r.UUID, "kept": r.Target == IntoPlace, "keep": replacedKept}); err != nil {
			return err
		}

		return takePlace(ctx, tx, r.ProjectUUID, forms, version, renames)
	})
}

// FailRestore says that a restore came to nothing, and why, in words for the user. The project that was made for it, if one was, is to be
// removed from then on. It reports whether it did: what is over stays as it is.
func (s *Store) FailRestore(ctx context.Context, r Restore, reason string) (failed bool, err error) {
	err = pg.InTx(ctx, s.b, func(tx pgx.Tx) error {
		failed, err = s.Within(tx).Restores().Fail(ctx, r.UUID, reason)
		if err != nil || !failed || r.Target != IntoNew {
			return err
		}

		_, err = pg.Exec(ctx, tx, `
			update platform.projects set status = 'deleting', updated_at = now()
			where uuid = @project and status in ('creating', 'active', 'paused', 'deleted')`,
			pgx.StrictNamedArgs{"project": r.ProjectUUID})
		return err
	})

	return failed, err
}

// ExpiredRestores returns the restores after which something is kept that has been kept long enough.
func (s *Store) ExpiredRestores(ctx context.Context) ([]Restore, error) {
	return pg.All[Restore](ctx, s.q, `select`+restoreColumns+`from platform.restores where kept_until < now()`)
}

// ForgoReplaced says that what a project held before a restore need not be kept any more. It fails with NotFound if there is no such restore, and with
// Conflict if nothing is kept.
func (s *Store) ForgoReplaced(ctx context.Context, project, id uuid.UUID) (Restore, error) {
	return change(ctx, s, func(tx *Store) (Restore, error) {
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

		return r, fault.New(fault.Conflict, "nothing is kept of what was before this restore").
			WithCode("nothing_kept").Because(err)
	})
}

// ReplacedDropped says that what a project held before a restore is gone.
func (s *Store) ReplacedDropped(ctx context.Context, id uuid.UUID) error {
	_, err := pg.Exec(ctx, s.q, `update platform.restores set kept_until = null where uuid = @id`,
		pgx.StrictNamedArgs{"id": id})
	return err
}

// RestoredProjects returns the projects that have bytes of which their own database knows nothing: something is being restored into them, or
// the database is kept that a restored one took the place of.
func (s *Store) RestoredProjects(ctx context.Context) ([]uuid.UUID, error) {
	return pg.Values[uuid.UUID](ctx, s.q, `
		select distinct project_uuid from platform.restores where kept_until is not null or status in ('pending', 'running')`)
}
