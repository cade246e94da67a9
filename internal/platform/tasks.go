package platform

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"socle/internal/pg"
)

// Tasks are rows that stand for work: a backup to make, a restore to carry out. A task is pending until a worker takes it. While it runs, the
// worker says from time to time that it is still at it; in the end it is completed or failed, and stays so.
type Tasks[T any] struct {
	Kind string // what one is called

	q              pg.Querier
	table, columns string
}

// Backups returns the backups as tasks.
func (s *Store) Backups() Tasks[Backup] {
	return Tasks[Backup]{"backup", s.q, "platform.backups", backupColumns}
}

// Restores returns the restores as tasks.
func (s *Store) Restores() Tasks[Restore] {
	return Tasks[Restore]{"restore", s.q, "platform.restores", restoreColumns}
}

// Start takes a pending task for the worker that calls, for the first time or once more. It fails with NotFound if it is not pending.
func (t Tasks[T]) Start(ctx context.Context, id uuid.UUID) (T, error) {
	return pg.One[T](ctx, t.q, `
		update `+t.table+` set status = 'running', started_at = coalesce(started_at, now()), heartbeat_at = now()
		where uuid = @id and status = 'pending'
		returning`+t.columns, pgx.StrictNamedArgs{"id": id})
}

// Beat says that a task is still being worked on. It fails with NotFound if someone has given it up.
func (t Tasks[T]) Beat(ctx context.Context, id uuid.UUID) error {
	_, err := pg.Value[uuid.UUID](ctx, t.q, `
		update `+t.table+` set heartbeat_at = now() where uuid = @id and status = 'running' returning uuid`,
		pgx.StrictNamedArgs{"id": id})
	return err
}

// Unfinished returns a task that is not over. It fails with NotFound if it is.
func (t Tasks[T]) Unfinished(ctx context.Context, id uuid.UUID) (T, error) {
	return pg.One[T](ctx, t.q,
		`select`+t.columns+`from `+t.table+` where uuid = @id and status in ('pending', 'running')`,
		pgx.StrictNamedArgs{"id": id})
}

// Fail says that a task came to nothing, and why, in words for the user. It reports whether it did: what is over stays as it is.
func (t Tasks[T]) Fail(ctx context.Context, id uuid.UUID, reason string) (bool, error) {
	n, err := pg.Exec(ctx, t.q, `
		update `+t.table+` set status = 'failed', completed_at = now(), error = @reason
		where uuid = @id and status in ('pending', 'running')`,
		pgx.StrictNamedArgs{"id": id, "reason": reason})
	return n > 0, err
}
