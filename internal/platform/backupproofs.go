package platform

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"socle/internal/pg"
)

// CompletedBackup returns a backup that is completed. It fails with NotFound if it is not.
func (s *Store) CompletedBackup(ctx context.Context, id uuid.UUID) (Backup, error) {
	return pg.One[Backup](ctx, s.q, `select`+backupColumns+`from platform.backups where uuid = @id and status = 'completed'`,
		pgx.StrictNamedArgs{"id": id})
}

// ProveBackup says that a backup was restored to see whether it can be, and what came of it: reason is empty if it can.
func (s *Store) ProveBackup(ctx context.Context, id uuid.UUID, reason string) error {
	_, err := pg.Exec(ctx, s.q, `
		update platform.backups set proven_at = case when @reason::text = '' then now() else proven_at end, proof_error = @reason
		where uuid = @id and status = 'completed'`, pgx.StrictNamedArgs{"id": id, "reason": reason})
	return err
}

// UnprovenBackups returns the newest completed backup of each active project, if it was not proven for a time and is not larger than most bytes.
func (s *Store) UnprovenBackups(ctx context.Context, age time.Duration, most int64) ([]uuid.UUID, error) {
	return pg.Values[uuid.UUID](ctx, s.q, `
		select newest.uuid from platform.projects p
		cross join lateral (
			select b.uuid, b.proven_at, b.size from platform.backups b
			where b.project_uuid = p.uuid and b.status = 'completed' order by b.completed_at desc limit 1) newest
		where p.status = 'active' and (newest.proven_at is null or newest.proven_at < now() - @age::interval) and newest.size <= @most`,
		pgx.StrictNamedArgs{"age": age, "most": most})
}
