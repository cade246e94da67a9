package webhook

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
)

const (
	maxFailing = 3 * 24 * time.Hour // without a success, until a webhook is paused
	maxDead    = 500                // deliveries given up without a success, until it is paused
)

// recordHealth records whether a webhook succeeds or fails, and pauses one that has failed for
// long.
func (w *worker) recordHealth(ctx context.Context, h *active, succeeded bool, dead int) error {
	if succeeded {
		if h.FailingSince == nil && h.Dead == 0 {
			return nil
		}

		_, err := pg.Exec(ctx, w.project.Trusted(),
			`update socle.webhook_states set failing_since = null, dead = 0 where webhook = @webhook`,
			pgx.StrictNamedArgs{"webhook": h.UUID})
		return err
	}

	isFailed, err := pg.Value[bool](ctx, w.project.Trusted(), `
		update socle.webhook_states set failing_since = coalesce(failing_since, now()), dead = dead + @dead
		where webhook = @webhook
		returning failing_since < now() - @longest::interval or dead >= @most`,
		pgx.StrictNamedArgs{"webhook": h.UUID, "dead": dead, "longest": maxFailing, "most": maxDead})
	if err != nil || !isFailed {
		return fault.Ignore(err, fault.NotFound) // deleted meanwhile
	}

	return w.pause(ctx, h)
}

// pause pauses a webhook that fails, and mails the project's admins. The mails come first: after a
// crash there are some more, but never none.
func (w *worker) pause(ctx context.Context, h *active) error {
	if err := w.service.Admins.MailAdmins(ctx, w.project.UUID, "webhook-paused",
		map[string]string{"what": h.Name}); err != nil {
		return err
	}

	_, err := pg.Exec(ctx, w.project.Trusted(), `
		update socle.webhooks set paused = true, pause_reason = 'failures', paused_at = now() where id = @id and not paused`,
		pgx.StrictNamedArgs{"id": h.UUID})
	return err
}
