package event

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/projectdb"
)

// idleCapture is the time after which a table that nobody follows is no longer captured.
const idleCapture = time.Hour

// Subject returns the subject of the log: nothing of it is kept in backups. Limits are an
// administrator's: those of a backup do not hold.
func Subject() projectdb.Subject {
	return projectdb.Subject{Sweep: sweep, Restore: projectdb.Restore{CopyQuota: copyLimits}}
}

// sweep removes old changes, and ends the capture of tables and facts that nobody follows. A table
// that is locked waits for the next sweep.
func sweep(ctx context.Context, p *projectdb.Project) error {
	limits, err := GetLimits(ctx, p.Trusted())
	if err != nil {
		return err
	}

	kept := pgx.StrictNamedArgs{"seconds": limits.kept().Seconds()}
	_, spread := pg.Exec(ctx, p.Trusted(), `select socle.spread_events(make_interval(secs => @seconds::float8))`, kept)
	kept["bytes"] = limits.LogBytes
	_, removed := pg.Exec(ctx, p.Trusted(), `
		select socle.remove_events(@bytes::bigint, make_interval(secs => @seconds::float8))`, kept)
	_, released := pg.Exec(ctx, p.Trusted(), `select socle.release(make_interval(secs => @seconds::float8))`,
		pgx.StrictNamedArgs{"seconds": idleCapture.Seconds()})
	_, unheard := pg.Exec(ctx, p.Trusted(), `
		select socle.listen(true) where exists (select from pg_trigger where tgname like 'socle\_fact\_%')`)

	return errors.Join(ignoreLocked(spread), ignoreLocked(removed), ignoreLocked(released), ignoreLocked(unheard))
}

// ignoreLocked ignores a lock_not_available error.
func ignoreLocked(err error) error {
	if pg.State(err) == "55P03" {
		return nil
	}
	return err
}
