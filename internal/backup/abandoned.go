package backup

import (
	"context"
	"errors"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"socle/internal/fault"
	"socle/internal/pg"
	"socle/internal/platform"
)

// FailAbandoned fails abandoned tasks: running ones without a heartbeat, and pending ones whose job
// was taken or has ended.
func (m *Maker) FailAbandoned(ctx context.Context) error {
	type abandoned struct {
		Kind, Status string
		UUID         uuid.UUID
	}

	tasks, err := pg.All[abandoned](ctx, m.Queue.Pool, `
		select kind, status, uuid
		from (
			select 'backup' as kind, status, uuid, heartbeat_at, created_at
			from platform.backups where status in ('pending', 'running')
			union all
			select 'restore', status, uuid, heartbeat_at, created_at
			from platform.restores where status in ('pending', 'running')) t
		where status = 'running' and heartbeat_at < now() - @silence::interval
			or status = 'pending' and coalesce(heartbeat_at, created_at) < now() - @silence::interval and not exists (
				select from river.river_job j
				where j.kind = t.kind and j.args ->> t.kind = t.uuid::text and (
					j.state in ('available', 'pending', 'retryable', 'scheduled') or
					j.state = 'running' and j.attempted_at > now() - @silence::interval))`,
		pgx.StrictNamedArgs{"silence": HeartbeatTimeout})

	errs := []error{err}
	for _, t := range tasks {
		reason := "the server running it stopped"
		if t.Status == "pending" {
			reason = "the server stopped before starting it"
		}

		switch t.Kind {
		case "backup":
			errs = append(errs, failTask(ctx, m.store.Backups(), t.UUID, reason, m.AbandonBackup))
		case "restore":
			errs = append(errs, failTask(ctx, m.store.Restores(), t.UUID, reason, m.AbandonRestore))
		}
	}

	return errors.Join(errs...)
}

func failTask[T any](
	ctx context.Context, tasks platform.Tasks[T], id uuid.UUID, reason string,
	end func(context.Context, T, string) error,
) error {
	t, err := tasks.Unfinished(ctx, id)
	if err != nil {
		return fault.Ignore(err, fault.NotFound)
	}

	return end(ctx, t, reason)
}
