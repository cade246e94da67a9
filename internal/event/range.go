package event

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
)

// Range is a part of a log that is read again: what was written from Since until Before, after a
// cursor. The end of a page has a cursor for the next one.
type Range struct {
	Since, Before time.Time
	Cursor        string // "": the beginning of the log
}

// ReadRange returns the next entries of a range. It fails with Invalid for a text that is no
// cursor, and with [ErrResync] for a cursor whose events are lost.
func (t *Tail) ReadRange(ctx context.Context, r Range) (Batch, error) {
	q := t.project.Trusted()
	at, epoch := position{from: beginning}, ""
	if r.Cursor != "" {
		var ok bool
		if at, epoch, ok = parseCursor(r.Cursor); !ok {
			return Batch{}, fault.New(fault.Invalid, "the cursor is none")
		}
		if err := checkRemoved(ctx, q, at.from, ""); err != nil && at.from.text != beginning.text {
			return Batch{}, err
		}
	}
	if at.to.text == "" {
		now, err := pg.Value[string](ctx, q, `select pg_current_snapshot()::text`)
		if err != nil {
			return Batch{}, err
		}
		at.to, _ = parseSnapshot(now)
	}

	p, err := readRange(ctx, q, at, r.Since, r.Before)
	if err != nil {
		return Batch{}, err
	}
	if epoch != "" && p.head.place != epoch {
		return Batch{}, ErrResync
	}

	return batchOf(p, at), nil
}

// beginning is a snapshot that sees no change.
var beginning = snapshot{text: "1:1:", xmin: 1, xmax: 1}

// HasRemoved reports whether events since a time may have been removed from a log.
func HasRemoved(ctx context.Context, q pg.Querier, since time.Time) (bool, error) {
	return pg.Value[bool](ctx, q, `
		select exists (select from socle.events_removed) and not exists (select from socle.events where at < @since)`,
		pgx.StrictNamedArgs{"since": since})
}
