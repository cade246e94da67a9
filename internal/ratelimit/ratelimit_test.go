package ratelimit

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// newAttempts returns attempts in a new table.
func newAttempts(t *testing.T) Attempts {
	t.Helper()

	pool, err := pgxpool.New(t.Context(), pgtest.URL(t))
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(pool.Close)
	a := New(pool, "public.attempts")
	exec(t, a, `create table public.attempts (
		key bytea primary key, count integer not null, resets_at timestamptz not null)`)

	return a
}

func exec(t *testing.T, a Attempts, sql string) int64 {
	t.Helper()

	n, err := pg.Exec(t.Context(), a.q, sql)
	if err != nil {
		t.Fatal(err)
	}

	return n
}

// tries calls f until it fails with TooMany and returns the number of successes.
func tries(t *testing.T, f func() error) int {
	t.Helper()

	for n := range 100 {
		err := f()
		if fault.Is(err, fault.TooMany) {
			return n
		}
		if err != nil {
			t.Fatal(err)
		}
	}

	t.Fatal("no limit after 100 attempts")
	return 0
}

// endWindows lets the windows of all counts end, but not the memory of known networks.
func endWindows(t *testing.T, a Attempts) {
	t.Helper()

	exec(t, a, `update public.attempts set resets_at = now() - interval '1 second' where resets_at < now() + interval '1 day'`)
}

var limit = Limit{Name: "action", Most: 3, Window: time.Minute}

func TestCount(t *testing.T) {
	t.Parallel()

	a := newAttempts(t)
	count := func(l Limit, subject string) func() error {
		return func() error { return a.Count(t.Context(), l, subject) }
	}

	if got := tries(t, count(limit, "ada")); got != 3 {
		t.Errorf("got %d attempts, want 3", got)
	}
	if got := tries(t, count(limit, "bob")); got != 3 {
		t.Errorf("another subject: got %d attempts, want 3", got)
	}
	if got := tries(t, count(Limit{Name: "other", Most: 5, Window: time.Minute}, "ada")); got != 5 {
		t.Errorf("another action: got %d attempts, want 5", got)
	}

	err := a.Count(t.Context(), limit, "ada")
	if got := fault.Of(err).RetryAfter; got < time.Second || got > time.Minute {
		t.Errorf("Retry-After: got %s, want the rest of the window", got)
	}

	endWindows(t, a)
	if got := tries(t, count(limit, "ada")); got != 3 {
		t.Errorf("next window: got %d attempts, want 3", got)
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()

	a := newAttempts(t)
	for n := range limit.Most {
		if err := a.Check(t.Context(), limit, "ada"); err != nil {
			t.Errorf("after %d attempts: got %v, want none", n, err)
		}
		if err := a.Count(t.Context(), limit, "ada"); err != nil {
			t.Errorf("attempt %d: got %v, want none", n+1, err)
		}
	}

	if err := a.Check(t.Context(), limit, "ada"); !fault.Is(err, fault.TooMany) {
		t.Errorf("after %d attempts: got %v, want TooMany", limit.Most, err)
	}
	if err := a.Check(t.Context(), limit, "bob"); err != nil {
		t.Errorf("another subject: got %v, want none", err)
	}

	endWindows(t, a)
	if err := a.Check(t.Context(), limit, "ada"); err != nil {
		t.Errorf("next window: got %v, want none", err)
	}
}

// TestGuesses checks that guesses from unknown networks count together and cannot lock out a known
// network, whose own guesses count as well.
func TestGuesses(t *testing.T) {
	t.Parallel()

	a := newAttempts(t)
	l := GuessLimit{Network: Limit{Name: "network", Most: 3, Window: time.Minute},
		UnknownNetworks: Limit{Name: "account", Most: 5, Window: time.Minute}}
	guess := func(network string) func() error {
		return func() error { return a.CountGuess(t.Context(), l, "ada", network) }
	}
	check := func(network string, want bool) {
		t.Helper()

		if err := a.CheckGuesses(t.Context(), l, "ada", network); fault.Is(err, fault.TooMany) == want {
			t.Errorf("guess from %s: got %v, want allowed: %t", network, err, want)
		}
	}

	if err := a.RecordNetwork(t.Context(), "home", "ada"); err != nil {
		t.Fatal(err)
	}

	if got := tries(t, guess("attacker 1")); got != 3 {
		t.Errorf("unknown network: got %d guesses, want 3", got)
	}

	check("attacker 1", false)
	check("attacker 2", true)
	if got := tries(t, guess("attacker 2")); got != 2 {
		t.Errorf("another unknown network: got %d guesses, want 2, the rest of the account's", got)
	}

	check("attacker 3", false)
	check("home", true)
	if got := tries(t, guess("home")); got != 3 {
		t.Errorf("known network: got %d guesses, want 3", got)
	}

	check("home", false)
	endWindows(t, a)
	check("home", true)
	check("attacker 1", true)
}

// TestRecordNetwork checks that a network becomes known to each account, and is written again only
// after a day.
func TestRecordNetwork(t *testing.T) {
	t.Parallel()

	a := newAttempts(t)
	record := func() string {
		t.Helper()

		if err := a.RecordNetwork(t.Context(), "home", "ada", "bob"); err != nil {
			t.Fatal(err)
		}

		at, err := pg.Value[string](t.Context(), a.q, `
			select string_agg(distinct resets_at::text, ' ') from public.attempts having count(*) = 2`)
		if err != nil {
			t.Fatal(err)
		}

		return at
	}

	first := record()
	if second := record(); second != first {
		t.Errorf("second log-in of a day: got %s, want %s", second, first)
	}

	exec(t, a, `update public.attempts set resets_at = resets_at - interval '2 days'`)
	if third := record(); third < first {
		t.Errorf("log-in two days later: got %s, want at least %s", third, first)
	}
}

func TestOff(t *testing.T) {
	t.Parallel()

	a := newAttempts(t)
	a.Off = true
	l := GuessLimit{Network: limit, UnknownNetworks: limit}
	for range limit.Most + 1 {
		for _, err := range []error{
			a.Count(t.Context(), limit, "ada"), a.Check(t.Context(), limit, "ada"),
			a.CountGuess(t.Context(), l, "ada", "home"), a.CheckGuesses(t.Context(), l, "ada", "home"),
		} {
			if err != nil {
				t.Errorf("got %v, want none", err)
			}
		}
	}

	if n := exec(t, a, `select from public.attempts`); n != 0 {
		t.Errorf("got %d counts, want none", n)
	}
}

func TestDeleteExpired(t *testing.T) {
	t.Parallel()

	a := newAttempts(t)
	for _, subject := range []string{"ada", "bob"} {
		if err := a.Count(t.Context(), limit, subject); err != nil {
			t.Fatal(err)
		}
	}

	endWindows(t, a)
	if err := a.Count(t.Context(), limit, "bob"); err != nil {
		t.Fatal(err)
	}
	if err := a.DeleteExpired(t.Context()); err != nil {
		t.Fatal(err)
	}

	if n := exec(t, a, `select from public.attempts`); n != 1 {
		t.Errorf("got %d counts, want 1", n)
	}
}

// TestRollback checks that an attempt counted in a transaction is undone with it.
func TestRollback(t *testing.T) {
	t.Parallel()

	a := newAttempts(t)
	err := pgx.BeginFunc(t.Context(), a.q.(*pgxpool.Pool), func(tx pgx.Tx) error {
		if err := a.In(tx).Count(t.Context(), limit, "ada"); err != nil {
			t.Error(err)
		}
		return pgx.ErrTxClosed
	})
	if err == nil {
		t.Error("the transaction was committed")
	}

	if n := exec(t, a, `select from public.attempts`); n != 0 {
		t.Errorf("got %d counts, want none", n)
	}
}
