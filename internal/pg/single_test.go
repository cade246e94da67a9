package pg_test

import (
	"context"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
)

// TestOneInSingle executes transactions of one round trip, and uses their connection again.
func TestOneInSingle(t *testing.T) {
	t.Parallel()

	pool := connect(t)
	if _, err := pool.Exec(t.Context(), `create table public.counts (name text primary key, n int not null)`); err != nil {
		t.Fatal(err)
	}

	const (
		insert = `
			with added as (insert into public.counts (name, n) values (@name, @n) on conflict do nothing returning n)
			select n from added, set_config('synchronous_commit', 'off', true)`
		lock    = `select from public.counts where n < @below for update`
		refused = `select from public.counts where 1 / (@below - 5) = 0 for update` // fails at five
	)

	for _, test := range []struct {
		name, lock   string
		n            int
		earlyRelease bool
		want         func(error) bool
	}{
		{"plain", "", 1, false, nil},
		{"plain", "", 1, false, func(err error) bool { return fault.Is(err, fault.NotFound) }},
		{"locked", lock, 2, false, nil},
		{"refused", refused, 5, false, func(err error) bool { return pg.State(err) == "22012" }},
		{"early", "", 3, true, nil},
		{"early", "", 3, true, func(err error) bool { return fault.Is(err, fault.NotFound) }},
		{"refused early", refused, 5, true, func(err error) bool { return pg.State(err) == "22012" }},
		{"both", lock, 4, true, nil},
	} {
		s := pg.Single{SQL: insert, Args: pgx.StrictNamedArgs{"name": test.name, "n": test.n}, Lock: test.lock,
			LockArgs: pgx.StrictNamedArgs{"below": test.n}, EarlyRelease: test.earlyRelease}
		got, err := pg.OneInSingle(t.Context(), pool, s, pgx.RowTo[int])

		switch {
		case test.want == nil && (err != nil || got != test.n):
			t.Errorf("%s: got %d (%v), want %d", test.name, got, err, test.n)
		case test.want != nil && !test.want(err):
			t.Errorf("%s: got %d (%v), want another error", test.name, got, err)
		}
	}

	names, err := pg.Values[string](t.Context(), pool, `select name from public.counts order by n`)
	if err != nil || len(names) != 4 {
		t.Errorf("got %q (%v), want 4 names", names, err)
	}

	if opened := pool.Stat().NewConnsCount(); opened != 1 {
		t.Errorf("opened %d connections, want 1", opened)
	}
}

// TestOneInSingleUnsent fails before a statement is sent, so it is certain that nothing changed.
func TestOneInSingleUnsent(t *testing.T) {
	t.Parallel()

	pool := connect(t)
	ended, cancel := context.WithCancel(t.Context())
	cancel()

	s := pg.Single{SQL: "select 1"}
	if _, err := pg.OneInSingle(ended, pool, s, pgx.RowTo[int]); !errors.Is(err, context.Canceled) ||
		fault.Of(err).Code == pg.OutcomeUnknown {
		t.Errorf("with an ended context: got %v, want its error", err)
	}

	pool.Close()
	if _, err := pg.OneInSingle(t.Context(), pool, s, pgx.RowTo[int]); !fault.Is(err, fault.Unavailable) ||
		fault.Of(err).Code == pg.OutcomeUnknown {
		t.Errorf("on a closed pool: got %v, want Unavailable", err)
	}
}
