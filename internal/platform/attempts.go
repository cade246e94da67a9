package platform

import (
	"context"
	"crypto/sha256"
	"time"

	"github.com/jackc/pgx/v5"

	"socle/internal/fault"
	"socle/internal/pg"
)

// Limit bounds the number of attempts in a time window.
type Limit struct {
	Name   string // of the action that is limited
	Most   int
	Window time.Duration
}

// attemptCount is the attempt count of the current window.
type attemptCount struct {
	Count int
	Wait  time.Duration // until the window ends
}

// tooMany returns the failure of an attempt beyond the limit.
func (t attemptCount) tooMany() error {
	return &fault.Error{
		Kind:       fault.TooMany,
		Detail:     "too many attempts; try again later",
		RetryAfter: max(t.Wait, time.Second),
	}
}

// CountAttempt counts one attempt by a subject. It fails with TooMany when the count of the window
// exceeds the limit. The count is stored, so all servers share it and it survives restarts.
func (s *Store) CountAttempt(ctx context.Context, l Limit, subject string) error {
	tries, err := pg.One[attemptCount](ctx, s.q, `
		insert into platform.attempts as a (key, count, resets_at) values (@key, 1, now() + @window::interval)
		on conflict (key) do update set
			count = case when a.resets_at <= now() then 1 else a.count + 1 end,
			resets_at = case when a.resets_at <= now() then excluded.resets_at else a.resets_at end
		returning count, resets_at - now() as wait`,
		pgx.StrictNamedArgs{"key": l.key(subject), "window": l.Window})
	if err != nil {
		return err
	}

	if tries.Count > l.Most {
		return tries.tooMany()
	}

	return nil
}

// CheckAttempts fails with TooMany if the subject has no attempt left in the window. It counts
// nothing.
func (s *Store) CheckAttempts(ctx context.Context, l Limit, subject string) error {
	tries, err := pg.One[attemptCount](ctx, s.q, `
		select count, resets_at - now() as wait from platform.attempts where key = @key and resets_at > now()`,
		pgx.StrictNamedArgs{"key": l.key(subject)})
	if fault.Is(err, fault.NotFound) {
		return nil
	}
	if err != nil {
		return err
	}

	if tries.Count >= l.Most {
		return tries.tooMany()
	}

	return nil
}

// GuessLimit bounds failed authentications: wrong passwords and second-factor codes.
//
// Wrong guesses count per account and client network. Guesses from all unknown networks also count
// together per account, which bounds a distributed attack. A known network, from which the account
// has logged in before, has only its own count, so attackers cannot lock out the owner.
type GuessLimit struct {
	Network         Limit // per account and network
	UnknownNetworks Limit // per account, all unknown networks together
}

// knownNetworkLimit sets how long a network stays known after a log-in from it.
var knownNetworkLimit = Limit{Name: "known network", Window: 90 * 24 * time.Hour}

// guessSubject returns the subject for guesses at an account from a network.
func guessSubject(account, network string) string { return account + "\x00" + network }

// RecordNetwork records a successful log-in to an account from a network, which makes the network
// known. It writes at most once a day.
func (s *Store) RecordNetwork(ctx context.Context, account, network string) error {
	_, err := pg.Exec(ctx, s.q, `
		insert into platform.attempts as a (key, count, resets_at)
		select @key::bytea, 1, now() + @window::interval
		where not exists (
			select from platform.attempts where key = @key and resets_at > now() + @window::interval - interval '1 day')
		on conflict (key) do update set resets_at = excluded.resets_at`,
		pgx.StrictNamedArgs{
			"key":    knownNetworkLimit.key(guessSubject(account, network)),
			"window": knownNetworkLimit.Window,
		})

	return err
}

// CheckGuesses fails with TooMany if no guess at an account is left for a network. It counts
// nothing.
func (s *Store) CheckGuesses(ctx context.Context, l GuessLimit, account, network string) error {
	tries, err := pg.One[attemptCount](ctx, s.q, `
		select count(*)::int as count, coalesce(max(resets_at - now()), interval '0') as wait
		from platform.attempts
		where resets_at > now() and (
			key = @network and count >= @network_most
			or key = @strangers and count >= @strangers_most
				and not exists (select from platform.attempts where key = @known and resets_at > now()))`,
		pgx.StrictNamedArgs{"network": l.Network.key(guessSubject(account, network)), "network_most": l.Network.Most,
			"strangers": l.UnknownNetworks.key(account), "strangers_most": l.UnknownNetworks.Most,
			"known": knownNetworkLimit.key(guessSubject(account, network))})
	if err != nil {
		return err
	}

	if tries.Count > 0 {
		return tries.tooMany()
	}

	return nil
}

// CountGuess counts a wrong guess. It fails with TooMany when a count exceeds its limit.
func (s *Store) CountGuess(ctx context.Context, l GuessLimit, account, network string) error {
	known, err := pg.Value[bool](ctx, s.q, `
		select exists (select from platform.attempts where key = @known and resets_at > now())`,
		pgx.StrictNamedArgs{"known": knownNetworkLimit.key(guessSubject(account, network))})
	if err != nil {
		return err
	}

	err = s.CountAttempt(ctx, l.Network, guessSubject(account, network))
	if err != nil || known {
		return err
	}

	return s.CountAttempt(ctx, l.UnknownNetworks, account)
}

// key returns the row key of a subject: a hash of fixed size that does not reveal the subject.
func (l Limit) key(subject string) []byte {
	sum := sha256.Sum256([]byte(l.Name + "\x00" + subject))
	return sum[:]
}

// ForgetAttempts deletes counts whose window has ended.
func (s *Store) ForgetAttempts(ctx context.Context) error {
	_, err := pg.Exec(ctx, s.q, `delete from platform.attempts where resets_at < now()`)
	return err
}
