package api_test

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/socle-dev/socle/internal/account"
	"github.com/socle-dev/socle/internal/api/apitest"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/platform"
	"github.com/socle-dev/socle/internal/queue"
	"github.com/socle-dev/socle/internal/token"
)

// newAccounts returns a service that enqueues mails, which the test's server sends.
func newAccounts(t *testing.T, a *apitest.API) *account.Service {
	t.Helper()

	c, err := pg.PoolConfig(string(a.Config.DatabaseURL), 4)
	if err != nil {
		t.Fatal(err)
	}

	pool, err := pgxpool.NewWithConfig(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(pool.Close)
	log := slog.New(slog.DiscardHandler)
	q, err := queue.New(queue.Config{Pool: pool, Log: log})
	if err != nil {
		t.Fatal(err)
	}

	return account.New(account.Config{Store: platform.New(pool), Queue: q, Log: log})
}

// waitForJobs waits until n jobs have ended, and returns their states.
func waitForJobs(t *testing.T, s *account.Service, n int) []string {
	t.Helper()

	var states []string
	until(t, fmt.Sprintf("%d jobs have ended", n), func() bool {
		var err error
		states, err = pg.Values[string](t.Context(), s.Queue.Pool,
			`select state::text from river.river_job where finalized_at is not null and kind = 'mail' order by id`)
		if err != nil {
			t.Fatal(err)
		}

		return len(states) == n
	})

	return states
}

// TestMail sends a mail if its transaction commits, with the token of its link, unless the link is
// invalid.
func TestMail(t *testing.T) {
	t.Parallel()

	a := apitest.User(t)
	accounts := newAccounts(t, a)
	user := uuid.NullUUID{UUID: uuid.MustParse(a.User), Valid: true}

	send := func(to string, meanwhile func(tx *account.Service, link account.Link) error) account.Link {
		t.Helper()

		var link account.Link
		err := accounts.Store.DB().InTx(t.Context(), func(tx *platform.DB) (err error) {
			link, err = accounts.In(tx).CreateLink(t.Context(), account.NewLink{
				Purpose: account.PasswordReset,
				User:    user,
				Email:   to,
				TTL:     time.Hour,
			})
			if err != nil {
				return err
			}

			if _, err := accounts.Queue.InsertTx(t.Context(), tx.PgxTx(), account.Mail{Template: "password-reset",
				To: to, Data: map[string]string{"username": "Ada"},
				Link: uuid.NullUUID{UUID: link.UUID, Valid: true}}); err != nil {
				return err
			}

			return meanwhile(accounts.In(tx), link)
		})
		if err != nil && !errors.Is(err, errUndone) {
			t.Fatal(err)
		}

		return link
	}

	send("undone@example.com", func(*account.Service, account.Link) error { return errUndone })

	send("used@example.com", func(tx *account.Service, l account.Link) error {
		_, err := tx.UseLink(t.Context(), l.Purpose, l.UUID)
		return err
	})

	first := send("first@example.com", func(*account.Service, account.Link) error { return nil })
	waitForJobs(t, accounts, 2)
	second := send("second@example.com", func(*account.Service, account.Link) error { return nil })
	waitForJobs(t, accounts, 3)

	secret, err := a.Config.LoadSecretKey()
	if err != nil {
		t.Fatal(err)
	}

	key := token.Derive(secret, "one-time links")
	log := a.Log.String()
	for _, l := range []account.Link{first, second} {
		if want := a.URL + "/reset-password?token=" +
			token.Link(key, account.PasswordReset, l.UUID); !strings.Contains(log, want) {
			t.Errorf("no mail has the link %s:\n%s", want, log)
		}
	}

	for _, word := range []string{"undone@", "used@"} {
		if strings.Contains(log, word) {
			t.Errorf("unexpected mail to %s", word)
		}
	}

	// The stored job does not contain the token.
	kept, err := pg.Value[string](t.Context(), accounts.Queue.Pool,
		`select string_agg(j::text, ' ') || (select string_agg(l::text, ' ') from platform.links l) from river.river_job j`)
	if err != nil || strings.Contains(kept, token.LinkPrefix) {
		t.Errorf("the database stores a token: %v\n%s", err, kept)
	}

	if _, err := accounts.UseLink(t.Context(), account.PasswordReset, first.UUID); err == nil {
		t.Error("an outdated link is accepted")
	}
	if _, err := accounts.UseLink(t.Context(), account.EmailChange, second.UUID); err == nil {
		t.Error("a link is accepted for another purpose")
	}
	if _, err := accounts.UseLink(t.Context(), account.PasswordReset, second.UUID); err != nil {
		t.Error(err)
	}
	if _, err := accounts.UseLink(t.Context(), account.PasswordReset, second.UUID); err == nil {
		t.Error("a link is accepted twice")
	}
}

var errUndone = errors.New("undone")

// TestBadMail tests that mails that can never be rendered or sent are not retried.
func TestBadMail(t *testing.T) {
	t.Parallel()

	a := apitest.User(t)
	accounts := newAccounts(t, a)
	for _, m := range []account.Mail{{Template: "absent", To: "a@example.com"},
		{Template: "password-reset", To: "a@example.com"},
		{Template: "password-changed",
			To: "a@example.com\r\nBcc: b@example.com", Data: map[string]string{"username": "x"}}} {
		if err := accounts.Store.DB().InTx(t.Context(), func(tx *platform.DB) error {
			_, err := accounts.Queue.InsertTx(t.Context(), tx.PgxTx(), m)
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}

	for i, state := range waitForJobs(t, accounts, 3) {
		if state != "cancelled" {
			t.Errorf("job %d is %s, want cancelled", i, state)
		}
	}

	if err := accounts.Sweep(t.Context()); err != nil {
		t.Error(err)
	}
}
