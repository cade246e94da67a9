// Package ratelimit counts a subject's attempts in a PostgreSQL table. All servers share the
// counts, which survive restarts. The caller names the table; the limits belong to the packages
// whose operations they bound.
package ratelimit

import (
	"context"
	"crypto/sha256"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
)

// Limit bounds the number of attempts in a time window.
type Limit struct {
	Name   string // limited action
	Most   int
	Window time.Duration
}

// key returns a subject's row key: a fixed-size hash that does not reveal the subject.
func (l Limit) key(subject string) []byte {
	sum := sha256.Sum256([]byte(l.Name + "\x00" + subject))
	return sum[:]
}

// Attempts counts attempts in a table with the columns key, count and resets_at.
type Attempts struct {
	Off bool // nothing is counted, and no limit applies

	q     pg.Querier
	table string
}

// New returns the attempts in a table, whose qualified name is part of the SQL.
func New(q pg.Querier, table string) Attempts { return Attempts{q: q, table: table} }

// In returns the attempts on another handle, such as a transaction.
func (a Attempts) In(q pg.Querier) Attempts {
	a.q = q
	return a
}

// state is the current window's attempt count.
type state struct {
	Count int
	Wait  time.Duration // until the window ends
}

// tooMany returns the error for an attempt beyond the limit.
func (s state) tooMany() error {
	return &fault.Error{
		Kind:       fault.TooMany,
		Detail:     "too many attempts; try again later",
		RetryAfter: max(s.Wait, time.Second),
	}
}

// Count counts one attempt by a subject. It fails with TooMany when the window's count exceeds the
// limit.
func (a Attempts) Count(ctx context.Context, l Limit, subject string) error {
	if a.Off {
		return nil
	}

	s, err := pg.One[state](ctx, a.q, `
		insert into `+a.table+` as a (key, count, resets_at) values (@key, 1, now() + @window::interval)
		on conflict (key) do update set
			count = case when a.resets_at <= now() then 1 else a.count + 1 end,
			resets_at = case when a.resets_at <= now() then excluded.resets_at else a.resets_at end
		returning count, resets_at - now() as wait`,
		pgx.StrictNamedArgs{"key": l.key(subject), "window": l.Window})
	if err != nil {
		return err
	}

	if s.Count > l.Most {
		return s.tooMany()
	}

	return nil
}

// CountFrom counts one attempt by a subject from a network, against a limit for each.
func (a Attempts) CountFrom(
	ctx context.Context, networkLimit Limit, network string, subjectLimit Limit, subject string,
) error {
	if err := a.Count(ctx, networkLimit, network); err != nil {
		return err
	}
	return a.Count(ctx, subjectLimit, subject)
}

// Check fails with TooMany if the subject has no attempt left in the window. It counts nothing.
func (a Attempts) Check(ctx context.Context, l Limit, subject string) error {
	if a.Off {
		return nil
	}

	s, err := pg.One[state](ctx, a.q, `
		select count, resets_at - now() as wait from `+a.table+` where key = @key and resets_at > now()`,
		pgx.StrictNamedArgs{"key": l.key(subject)})
	if fault.Is(err, fault.NotFound) {
		return nil
	}
	if err != nil {
		return err
	}

	if s.Count >= l.Most {
		return s.tooMany()
	}

	return nil
}

// DeleteExpired deletes counts whose window has ended.
func (a Attempts) DeleteExpired(ctx context.Context) error {
	_, err := pg.Exec(ctx, a.q, `delete from `+a.table+` where resets_at < now()`)
	return err
}
