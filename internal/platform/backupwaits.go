package platform

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"socle/internal/pg"
)

// PostponeBackup sets a running backup back to pending for a later retry. what is the cause, in
// words for users. It returns the time since the first start. It fails with NotFound if the backup
// is not running any more.
func (s *Store) PostponeBackup(ctx context.Context, id uuid.UUID, what string) (time.Duration, error) {
	seconds, err := pg.Value[float64](ctx, s.q, `
		update platform.backups set status = 'pending', waiting_for = @what, heartbeat_at = now()
		where uuid = @id and status = 'running'
		returning extract(epoch from now() - started_at)::float8`, pgx.StrictNamedArgs{"id": id, "what": what})
	return time.Duration(seconds * float64(time.Second)), err
}
