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

// Backup is a backup of a project.
type Backup struct {
	UUID        uuid.UUID  `json:"uuid"`
	ProjectUUID uuid.UUID  `json:"projectUuid"`
	Status      string     `json:"status" enum:"pending,running,completed,failed,deleting"`
	StartedAt   *time.Time `json:"startedAt" nullable:"true"`
	CompletedAt *time.Time `json:"completedAt" nullable:"true" doc:"When it was completed or failed."`
	Error       string     `json:"error" doc:"Why it failed; empty unless it did."`
	Size        *int64     `json:"-"` // stored bytes of the dump
	ProvenAt    *time.Time `json:"-"`
	ProofError  string     `json:"-"`
	Scheduled   bool       `json:"-"`
	TriedAt     *time.Time `json:"-"`
	Origin      string     `json:"-"`
	MadeBefore  *string    `json:"-"` // operation that waited for it
	WaitingFor  string     `json:"-"` // text for users
	Warnings    []string   `json:"-"` // texts for users
}

const backupColumns = ` uuid, project_uuid, status, started_at, completed_at, error, size, proven_at, proof_error, scheduled, tried_at, origin, made_before, waiting_for, warnings `

// CreateBackup creates a pending backup. It fails with Conflict if the project has an unfinished
// one.
func (s *Store) CreateBackup(ctx context.Context, project, user uuid.UUID) (Backup, error) {
	return s.createBackup(ctx, project, user, false)
}

func (s *Store) createBackup(ctx context.Context, project, user uuid.UUID, scheduled bool) (Backup, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return Backup{}, err
	}

	audit.CreatedUUID(ctx, id)

	b, err := pg.One[Backup](ctx, s.q, `
		insert into platform.backups (uuid, project_uuid, created_by, scheduled) values (@id, @project, @user, @scheduled)
		returning`+backupColumns, pgx.StrictNamedArgs{
		"id": id, "project": project, "user": user, "scheduled": scheduled,
	})
	if pg.Violates(err, "backups_one_at_a_time") {
		return b, fault.New(fault.Conflict, "another backup of the project is under way").
			WithCode("backup_under_way").Because(err)
	}
	if err != nil {
		return b, err
	}

	return b, s.takeAwaiting(ctx, project, id)
}

// GetBackup returns a backup of a project. It fails with NotFound for an unknown backup.
func (s *Store) GetBackup(ctx context.Context, project, id uuid.UUID) (Backup, error) {
	return pg.One[Backup](ctx, s.q,
		`select`+backupColumns+`from platform.backups where uuid = @id and project_uuid = @project`,
		pgx.StrictNamedArgs{"id": id, "project": project})
}

// CompleteBackup sets a running backup to completed. size and sum are the bytes and the checksum of
// its stored dump. warnings list the parts that a restore does not bring back. It fails with
// NotFound if the backup is not running any more.
func (s *Store) CompleteBackup(ctx context.Context, id uuid.UUID, size int64, sum []byte, warnings []string) error {
	_, err := pg.Value[uuid.UUID](ctx, s.q, `
		update platform.backups
		set status = 'completed', completed_at = now(), size = @size, sha256 = @sum, waiting_for = '', warnings = coalesce(@warnings::text[], '{}')
		where uuid = @id and status = 'running' returning uuid`,
		pgx.StrictNamedArgs{"id": id, "size": size, "sum": sum, "warnings": warnings})
	return err
}

// BackupUsage holds the count and the size of a project's backups.
type BackupUsage struct {
	Count  int64      `json:"count" doc:"Completed ones."`
	Bytes  int64      `json:"bytes"`
	LastAt *time.Time `json:"lastAt" nullable:"true" doc:"When the newest one was completed."`

	LastProvenAt *time.Time `json:"lastProvenAt" nullable:"true" doc:"When one was last restored into a database of its own and found to be whole."`
}

// GetBackupUsage counts the completed backups of a project.
func (s *Store) GetBackupUsage(ctx context.Context, project uuid.UUID) (BackupUsage, error) {
	return pg.One[BackupUsage](ctx, s.q, `
		select count(*), coalesce(sum(size), 0)::bigint as bytes, max(completed_at) as last_at, max(proven_at) as last_proven_at
		from platform.backups where project_uuid = @project and status = 'completed'`,
		pgx.StrictNamedArgs{"project": project})
}
