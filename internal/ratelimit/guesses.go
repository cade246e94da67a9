package ratelimit

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/pg"
)

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

// RecordNetwork makes a network known to accounts after log-ins from it. It writes at most once a
// day, also if a is off.
func (a Attempts) RecordNetwork(ctx context.Context, network string, accounts ...string) error {
	keys := make([][]byte, len(accounts))
	for i, account := range accounts {
		keys[i] = knownNetworkLimit.key(guessSubject(account, network))
	}

	// The order keeps concurrent log-ins from a deadlock.
	_, err := pg.Exec(ctx, a.q, `
		insert into `+a.table+` as a (key, count, resets_at)
		select n.key, 1, now() + @window::interval from unnest(@keys::bytea[]) as n (key)
		where not exists (
			select from `+a.table+` where key = n.key and resets_at > now() + @window::interval - interval '1 day')
		order by n.key
		on conflict (key) do update set resets_at = excluded.resets_at`,
		pgx.StrictNamedArgs{"keys": keys, "window": knownNetworkLimit.Window})

	return err
}

// CheckGuesses fails with TooMany if no guess at an account is left for a network. It counts
// nothing.
func (a Attempts) CheckGuesses(ctx context.Context, l GuessLimit, account, network string) error {
	if a.Off {
		return nil
	}

	s, err := pg.One[state](ctx, a.q, `
		select count(*)::int as count, coalesce(max(resets_at - now()), interval '0') as wait
		from `+a.table+`
		where resets_at > now() and (
			key = @network and count >= @network_most
			or key = @strangers and count >= @strangers_most
				and not exists (select from `+a.table+` where key = @known and resets_at > now()))`,
		pgx.StrictNamedArgs{"network": l.Network.key(guessSubject(account, network)), "network_most": l.Network.Most,
			"strangers": l.UnknownNetworks.key(account), "strangers_most": l.UnknownNetworks.Most,
			"known": knownNetworkLimit.key(guessSubject(account, network))})
	if err != nil {
		return err
	}

	if s.Count > 0 {
		return s.tooMany()
	}

	return nil
}

// CountGuess counts a wrong guess. It fails with TooMany when a count exceeds its limit.
func (a Attempts) CountGuess(ctx context.Context, l GuessLimit, account, network string) error {
	if a.Off {
		return nil
	}

	isKnown, err := pg.Value[bool](ctx, a.q, `
		select exists (select from `+a.table+` where key = @known and resets_at > now())`,
		pgx.StrictNamedArgs{"known": knownNetworkLimit.key(guessSubject(account, network))})
	if err != nil {
		return err
	}

	err = a.Count(ctx, l.Network, guessSubject(account, network))
	if err != nil || isKnown {
		return err
	}

	return a.Count(ctx, l.UnknownNetworks, account)
}
