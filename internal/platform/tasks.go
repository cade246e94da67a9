package platform

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"socle/internal/pg"
)

// Tasks are rows that stand for asynchronous work: backups and restores. A task is pending until a
// worker starts it. A running task has a heartbeat. It ends as completed or failed, which is final.
type Tasks[T any] struct {
	Kind string // noun for messages

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

// Start sets a pending task to running, for the first time or as a retry. It fails with NotFound if
// the task is not pending.
func (t Tasks[T]) Start(ctx context.Context, id uuid.UUID) (T, error) {
	return pg.One[T](ctx, t.q, `
		update `+t.table+` set status = 'running', started_at = coalesce(started_at, now()), heartbeat_at = now()
		where uuid = @id and status = 'pending'
		returning`+t.columns, pgx.StrictNamedArgs{"id": id})
}

// Heartbeat records a heartbeat of a running task. It fails with NotFound if the task is not
// running any more.
func (t Tasks[T]) Heartbeat(ctx context.Context, id uuid.UUID) error {
	_, err := pg.Value[uuid.UUID](ctx, t.q, `
		update `+t.table+` set heartbeat_at = now() where uuid = @id and status = 'running' returning uuid`,
		pgx.StrictNamedArgs{"id": id})
	return err
}

// Unfinished returns a pending or running task. It fails with NotFound if the task has ended.
func (t Tasks[T]) Unfinished(ctx context.Context, id uuid.UUID) (T, error) {
	return pg.One[T](ctx, t.q,
		`select`+t.columns+`from `+t.table+` where uuid = @id and status in ('pending', 'running')`,
		pgx.StrictNamedArgs{"id": id})
}

// Fail sets an unfinished task to failed. reason is for users. It reports false if the task has
// already ended, and changes nothing then.
func (t Tasks[T]) Fail(ctx context.Context, id uuid.UUID, reason string) (bool, error) {
	n, err := pg.Exec(ctx, t.q, `
		update `+t.table+` set status = 'failed', completed_at = now(), error = @reason
		where uuid = @id and status in ('pending', 'running')`,
		pgx.StrictNamedArgs{"id": id, "reason": reason})
	return n > 0, err
}
