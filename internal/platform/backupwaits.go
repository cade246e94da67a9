package platform

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"socle/internal/pg"
)

// PostponeBackup says that a backup that runs is to be begun again later, and what it waits for. It returns for how long it has been tried. It fails with NotFound
// if someone has given it up.
func (s *Store) PostponeBackup(ctx context.Context, id uuid.UUID, what string) (time.Duration, error) {
	seconds, err := pg.Value[float64](ctx, s.q, `
		update platform.backups set status = 'pending', waiting_for = @what, heartbeat_at = now()
		where uuid = @id and status = 'running'
		returning extract(epoch from now() - started_at)::float8`, pgx.StrictNamedArgs{"id": id, "what": what})
	return time.Duration(seconds * float64(time.Second)), err
}
