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
	return &fault.Error{
		Kind:       fault.TooMany,
		Detail:     "too many attempts; try again later",
		RetryAfter: max(t.Wait, time.Second),
	}
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

// GuessLimit bounds wrong proofs of who one is: passwords, and codes of a second factor.
//
// Guesses count by the account and the client's network. Beside that, those from all networks that the
// account was never used from count together: that is the bound of a distributed attack. A network that
// is known has only its own count, so strangers can't lock an owner out of it.
type GuessLimit struct {
	Network   Limit // from one network
	Strangers Limit // from all networks together that are not known
}

// knownNetworks remembers for how long a network is known after a log-in from it.
var knownNetworks = Limit{Name: "known network", Window: 90 * 24 * time.Hour}

// from returns what a network's guesses at an account count under.
func from(account, network string) string { return account + "\x00" + network }

// KnowNetwork remembers that an account was used from a network, by someone who proved that it is theirs.
func (s *Store) KnowNetwork(ctx context.Context, account, network string) error {
	_, err := pg.Exec(ctx, s.q, `
		insert into platform.attempts as a (key, count, resets_at)
		select @key::bytea, 1, now() + @window::interval
		where not exists (
			select from platform.attempts where key = @key and resets_at > now() + @window::interval - interval '1 day')
		on conflict (key) do update set resets_at = excluded.resets_at`,
		pgx.StrictNamedArgs{"key": knownNetworks.key(from(account, network)), "window": knownNetworks.Window})

	return err
}

// MayGuess fails with TooMany if no guess is left for an account from a network. It counts nothing.
func (s *Store) MayGuess(ctx context.Context, l GuessLimit, account, network string) error {
	t, err := pg.One[tries](ctx, s.q, `
		select count(*)::int as count, coalesce(max(resets_at - now()), interval '0') as wait
		from platform.attempts
		where resets_at > now() and (
			key = @network and count >= @network_most
			or key = @strangers and count >= @strangers_most
				and not exists (select from platform.attempts where key = @known and resets_at > now()))`,
		pgx.StrictNamedArgs{"network": l.Network.key(from(account, network)), "network_most": l.Network.Most,
			"strangers": l.Strangers.key(account), "strangers_most": l.Strangers.Most,
			"known": knownNetworks.key(from(account, network))})
	if err == nil && t.Count > 0 {
		return t.tooMany()
	}

	return err
}

// CountGuess counts a wrong guess. It fails with TooMany once there were more than the limit allows.
func (s *Store) CountGuess(ctx context.Context, l GuessLimit, account, network string) error {
	known, err := pg.Value[bool](ctx, s.q, `
		select exists (select from platform.attempts where key = @known and resets_at > now())`,
		pgx.StrictNamedArgs{"known": knownNetworks.key(from(account, network))})
	if err != nil {
		return err
	}

	err = s.Attempt(ctx, l.Network, from(account, network))
	if err != nil || known {
		return err
	}

	return s.Attempt(ctx, l.Strangers, account)
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
