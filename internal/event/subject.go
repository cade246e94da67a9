package event

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/projectdb"
)

const (
	// idleCapture is the time after which a table that nobody follows is no longer captured.
	idleCapture = time.Hour
	// maxLogBytes bounds the log of a project in bytes. Beyond it the oldest changes are removed.
	maxLogBytes = 256 << 20
)

// Subject returns the subject of the log: nothing of it is kept in backups.
func Subject() projectdb.Subject { return projectdb.Subject{Sweep: sweep} }

// sweep removes old changes, and ends the capture of tables and facts that nobody follows. A table
// that is locked waits for the next sweep.
func sweep(ctx context.Context, p *projectdb.Project) error {
	_, err := pg.Exec(ctx, p.Trusted(), `select socle.remove_events($1)`, maxLogBytes)
	_, released := pg.Exec(ctx, p.Trusted(), `select socle.release(make_interval(secs => @seconds::float8))`,
		pgx.StrictNamedArgs{"seconds": idleCapture.Seconds()})
	_, unheard := pg.Exec(ctx, p.Trusted(), `
		select socle.listen(true) where exists (select from pg_trigger where tgname like 'socle\_fact\_%')`)

	return errors.Join(ignoreLocked(err), ignoreLocked(released), ignoreLocked(unheard))
}

// ignoreLocked ignores a lock_not_available error.
func ignoreLocked(err error) error {
	if pg.State(err) == "55P03" {
		return nil
	}
	return err
}
