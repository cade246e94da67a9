package platform

import (
	"context"
	"crypto/sha256"
	"time"

	"github.com/jackc/pgx/v5"

	"socle/internal/fault"
	"socle/internal/pg"
)

// Limit bounds how often something may be tried in a window of time.
type Limit struct {
	Name   string // what is tried
	Most   int
	Window time.Duration
}

// tries is what is counted for someone in the window that is open.
type tries struct {
	Count int
	Wait  time.Duration // until it closes
}

func (t tries) tooMany() error {
	return &fault.Error{Kind: fault.TooMany, Detail: "too many attempts; try again later", RetryAfter: max(t.Wait, time.Second)}
}

// Attempt counts one try of who. It fails with TooMany once there were more than the limit allows in the
// window. The count is shared by all servers of the instance and outlives them.
func (s *Store) Attempt(ctx context.Context, l Limit, who string) error {
	t, err := pg.One[tries](ctx, s.q, `
		insert into platform.attempts as a (key, count, resets_at) values (@key, 1, now() + @window::interval)
		on conflict (key) do update set
			count = case when a.resets_at <= now() then 1 else a.count + 1 end,
			resets_at = case when a.resets_at <= now() then excluded.resets_at else a.resets_at end
		returning count, resets_at - now() as wait`,
		pgx.StrictNamedArgs{"key": l.key(who), "window": l.Window})
	if err == nil && t.Count > l.Most {
		return t.tooMany()
	}
	return err
}

// Attempts fails with TooMany if who has no try left; it counts nothing.
func (s *Store) Attempts(ctx context.Context, l Limit, who string) error {
	t, err := pg.One[tries](ctx, s.q, `
		select count, resets_at - now() as wait from platform.attempts where key = @key and resets_at > now()`,
		pgx.StrictNamedArgs{"key": l.key(who)})
	if fault.Is(err, fault.NotFound) {
		return nil
	}
	if err == nil && t.Count >= l.Most {
		return t.tooMany()
	}
	return err
}

// key returns what stands for someone's tries: fixed in size, and silent about who it is.
func (l Limit) key(who string) []byte {
	sum := sha256.Sum256([]byte(l.Name + "\x00" + who))
	return sum[:]
}

// ForgetAttempts removes the counts whose window has passed.
func (s *Store) ForgetAttempts(ctx context.Context) error {
	_, err := pg.Exec(ctx, s.q, `delete from platform.attempts where resets_at < now()`)
	return err
}
