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
)

// Backup is a project backup.
type Backup struct {
	UUID        uuid.UUID  `json:"uuid"`
	ProjectUUID uuid.UUID  `json:"projectUuid"`
	Status      Status     `json:"status" enum:"pending,running,completed,failed,deleting"`
	StartedAt   *time.Time `json:"startedAt" nullable:"true"`
	CompletedAt *time.Time `json:"completedAt" nullable:"true" doc:"When it completed or failed."`
	Error       string     `json:"error" doc:"Cause of the failure; empty unless failed."`
	Size        *int64     `json:"-"` // bytes of the stored dump
	ProvenAt    *time.Time `json:"-"`
	ProofError  string     `json:"-"`
	Scheduled   bool       `json:"-"`
	TriedAt     *time.Time `json:"-"`
	Origin      string     `json:"-"`
	MadeBefore  *string    `json:"-"` // operation that waited for it
	WaitingFor  string     `json:"-"` // text for users
	Warnings    []string   `json:"-"` // texts for users
	Missing     []Missing  `json:"-"` // objects that the last proof could not create
}

// Origins.
const (
	OriginMade     = "made"
	OriginImported = "imported"
)

const backupColumns = ` uuid, project_uuid, status, started_at, completed_at, error, size, proven_at, proof_error, scheduled, tried_at, origin, made_before, waiting_for, warnings, missing `

// CreateBackup creates a pending backup. It fails with Conflict if the project has an unfinished
// one.
func (s *store) CreateBackup(ctx context.Context, project, user uuid.UUID) (Backup, error) {
	return s.insert(ctx, project, user, false)
}

func (s *store) insert(ctx context.Context, project, user uuid.UUID, isScheduled bool) (Backup, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return Backup{}, err
	}

	audit.CreatedUUID(ctx, id)

	b, err := pg.One[Backup](ctx, s.q, `
		insert into platform.backups (uuid, project_uuid, created_by, scheduled) values (@id, @project, @user, @scheduled)
		returning`+backupColumns, pgx.StrictNamedArgs{
		"id": id, "project": project, "user": user, "scheduled": isScheduled,
	})
	if pg.Violates(err, "backups_one_at_a_time") {
		return b, fault.New(fault.Conflict, "another backup of the project is under way").
			WithCode("backup_under_way").WithCause(err)
	}
	if err != nil {
		return b, err
	}

	return b, s.assignWaiting(ctx, project, id)
}

// Get returns a project's backup. It fails with NotFound for an unknown backup.
func (s *store) Get(ctx context.Context, project, id uuid.UUID) (Backup, error) {
	return pg.One[Backup](ctx, s.q,
		`select`+backupColumns+`from platform.backups where uuid = @id and project_uuid = @project`,
		pgx.StrictNamedArgs{"id": id, "project": project})
}

// List returns a page of a project's backups and the total count.
func (s *store) List(ctx context.Context, project uuid.UUID, page pg.Page) ([]Backup, int64, error) {
	return pg.List[Backup](ctx, s.q, pg.Listing{
		Columns: backupColumns,
		From:    `platform.backups where project_uuid = @project`,
		Sorts:   map[string]string{"createdAt": "created_at", "completedAt": "completed_at"},
		Tie:     "uuid",
	}, page, pgx.StrictNamedArgs{"project": project})
}

// failures returns all backups in a project, and reports for each whether it failed.
func (s *store) failures(ctx context.Context, project uuid.UUID) (map[uuid.UUID]bool, error) {
	all, err := pg.All[struct {
		UUID   uuid.UUID
		Failed bool
	}](ctx, s.q, `select uuid, status = 'failed' as failed from platform.backups where project_uuid = @project`,
		pgx.StrictNamedArgs{"project": project})

	failures := make(map[uuid.UUID]bool, len(all))
	for _, b := range all {
		failures[b.UUID] = b.Failed
	}

	return failures, err
}

// setPending sets a running backup back to pending for a later retry. cause is text for
// users. It returns the time since the first start. It fails with NotFound if the backup
// is not running any more.
func (s *store) setPending(ctx context.Context, id uuid.UUID, cause string) (time.Duration, error) {
	seconds, err := pg.Value[float64](ctx, s.q, `
		update platform.backups set status = 'pending', waiting_for = @what, heartbeat_at = now()
		where uuid = @id and status = 'running'
		returning extract(epoch from now() - started_at)::float8`, pgx.StrictNamedArgs{"id": id, "what": cause})
	return time.Duration(seconds * float64(time.Second)), err
}

// complete sets a running backup to completed. size and sum are the stored dump's bytes and
// checksum. warnings list the parts that a restore does not bring back. It fails with NotFound if
// the backup is not running any more.
func (s *store) complete(ctx context.Context, id uuid.UUID, size int64, sum []byte, warnings []string) error {
	_, err := pg.Value[uuid.UUID](ctx, s.q, `
		update platform.backups
		set status = 'completed', completed_at = now(), size = @size, sha256 = @sum, waiting_for = '', warnings = coalesce(@warnings::text[], '{}')
		where uuid = @id and status = 'running' returning uuid`,
		pgx.StrictNamedArgs{"id": id, "size": size, "sum": sum, "warnings": warnings})
	return err
}

// Delete sets a backup to status deleting, after which it cannot be restored. It fails with
// NotFound for an unknown backup, and with Conflict while the backup is being made or restored.
func (s *store) Delete(ctx context.Context, project, id uuid.UUID) (Backup, error) {
	return pg.InTxValue(ctx, s.inTx, func(tx *store) (Backup, error) {
		args := pgx.StrictNamedArgs{"id": id, "project": project}
		status, err := pg.Value[Status](ctx, tx.q,
			`select status from platform.backups where uuid = @id and project_uuid = @project for update`, args)
		if err != nil {
			return Backup{}, err
		}

		if status.Unfinished() {
			return Backup{}, fault.New(fault.Conflict, "the backup is being made").WithCode("backup_under_way")
		}

		restoring, err := pg.Value[bool](ctx, tx.q, `
			select exists (select from platform.restores where backup_uuid = @id and backup_project_uuid = @project and status in ('pending', 'running'))`, args)
		if err != nil {
			return Backup{}, err
		}

		if restoring {
			return Backup{}, fault.New(fault.Conflict, "the backup is being restored").WithCode("restore_under_way")
		}

		return pg.One[Backup](ctx, tx.q, `
			update platform.backups set status = 'deleting', bytes_until = null where uuid = @id and project_uuid = @project
			returning`+backupColumns, args)
	})
}

// deleting returns the backups in status deleting whose bytes are due for removal.
func (s *store) deleting(ctx context.Context) ([]Backup, error) {
	return pg.All[Backup](ctx, s.q, `select`+backupColumns+`
		from platform.backups where status = 'deleting' and coalesce(bytes_until <= now(), true)`)
}

// forget deletes a backup's row. The caller has removed its files.
func (s *store) forget(ctx context.Context, id uuid.UUID) error {
	_, err := pg.Exec(ctx, s.q, `delete from platform.backups where uuid = @id and status = 'deleting'`,
		pgx.StrictNamedArgs{"id": id})
	return err
}

// startImport creates a backup in status running for an import. It fails with Conflict if another
// import into the project is running.
func (s *store) startImport(ctx context.Context, project, user uuid.UUID) (Backup, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return Backup{}, err
	}

	b, err := pg.One[Backup](ctx, s.q, `
		insert into platform.backups (uuid, project_uuid, created_by, origin, status, started_at, heartbeat_at)
		values (@id, @project, @user, @origin, 'running', now(), now())
		returning`+backupColumns, pgx.StrictNamedArgs{
		"id": id, "project": project, "user": user, "origin": OriginImported,
	})
	if pg.Violates(err, "backups_one_at_a_time") {
		return b, fault.New(fault.Conflict, "another backup is being imported into the project").
			WithCode("import_under_way").WithCause(err)
	}

	return b, err
}

// forgetImport deletes a failed import's row. The caller has removed its files.
func (s *store) forgetImport(ctx context.Context, id uuid.UUID) error {
	_, err := pg.Exec(ctx, s.q,
		`delete from platform.backups where uuid = @id and status = 'running' and origin = @origin`,
		pgx.StrictNamedArgs{"id": id, "origin": OriginImported})
	return err
}

// BackupUsage holds the count and the size of a project's backups.
type BackupUsage struct {
	Count  int64      `json:"count" doc:"Number of completed backups."`
	Bytes  int64      `json:"bytes"`
	LastAt *time.Time `json:"lastAt" nullable:"true" doc:"When the newest one completed."`

	LastProvenAt *time.Time `json:"lastProvenAt" nullable:"true" doc:"When a backup was last proven by a trial restore."`
}

// GetUsage counts a project's completed backups.
func (s *store) GetUsage(ctx context.Context, project uuid.UUID) (BackupUsage, error) {
	return pg.One[BackupUsage](ctx, s.q, `
		select count(*), coalesce(sum(size), 0)::bigint as bytes, max(completed_at) as last_at, max(proven_at) as last_proven_at
		from platform.backups where project_uuid = @project and status = 'completed'`,
		pgx.StrictNamedArgs{"project": project})
}

// Create creates a backup and enqueues its job. It fails with Conflict if the project already
// has a backup in progress.
func (s *Service) Create(ctx context.Context, project, user uuid.UUID) (Backup, error) {
	var b Backup
	err := s.inTx(ctx, func(tx *store) error {
		var err error
		if b, err = tx.CreateBackup(ctx, project, user); err != nil {
			return err
		}

		return s.enqueue(ctx, tx, b)
	})

	return b, err
}

// enqueue enqueues a pending backup's job.
func (s *Service) enqueue(ctx context.Context, tx *store, b Backup) error {
	_, err := s.Queue.InsertTx(ctx, tx.tx(), backupArgs{b.UUID, b.ProjectUUID})
	return err
}

// RemoveDeleted removes deleted backups and the databases replaced by restores whose retention has
// expired. It also opens the gate of each project in which undoing a restore was cut off.
func (s *Service) RemoveDeleted(ctx context.Context) error {
	deleting, err := s.deleting(ctx)
	errs := []error{err}
	for _, b := range deleting {
		err := s.Discard(ctx, b.ProjectUUID, b.UUID)
		if err == nil {
			err = s.forget(ctx, b.UUID)
		}

		errs = append(errs, err)
	}

	restores, err := s.expiredRestores(ctx)
	errs = append(errs, err)
	for _, r := range restores {
		errs = append(errs, s.DropReplaced(ctx, r))
	}

	return errors.Join(append(errs, s.OpenGates(ctx))...)
}

// checkCompleted fails with Conflict, code backup_not_completed, unless a backup is completed.
func checkCompleted(b Backup) error {
	if b.Status == Completed {
		return nil
	}

	return fault.New(fault.Conflict, "the backup is not completed but %s", b.Status).WithCode("backup_not_completed")
}
