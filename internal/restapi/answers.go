package restapi

import (
	"context"

	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/projectdb"
)

// Subject returns the subject of answers kept for an Idempotency-Key. A request with a key removes
// expired ones too, as long as there are such requests.
func Subject() projectdb.Subject { return projectdb.Subject{Sweep: removeAnswers} }

// removeAnswers removes the answers that have expired, a bounded number at a time.
func removeAnswers(ctx context.Context, p *projectdb.Project) error {
	for {
		n, err := pg.Exec(ctx, p.Trusted(), `
			delete from socle.kept_answers where key in (
				select key from socle.kept_answers where kept_at <= now() - interval '1 day' limit 1000 for update skip locked)`)
		if err != nil || n < 1000 {
			return err
		}
	}
}
