package webhook

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/projectdb"
)

// Subject returns the subject of webhooks. They are in backups, their deliveries are not. A
// restored project tells nobody until a member resumes a webhook.
func Subject() projectdb.Subject {
	return projectdb.Subject{Schema: projectdb.Schema, Sweep: prune,
		Restore: projectdb.Restore{Skipped: []string{"webhook_states", "webhook_deliveries"}, Prepare: pauseRestored}}
}

// pauseRestored pauses all webhooks of a restored database. It does nothing before the migration
// that creates them.
func pauseRestored(ctx context.Context, tx pgx.Tx) error {
	exists, err := pg.Value[bool](ctx, tx, `select to_regclass('socle.webhooks') is not null`)
	if err != nil || !exists {
		return err
	}

	_, err = pg.Exec(ctx, tx, `
		update socle.webhooks set paused = true, pause_reason = 'restore', paused_at = now() where pause_reason <> 'restore'`)
	return err
}
