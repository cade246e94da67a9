package account_test

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"socle/internal/account"
	"socle/internal/api/apitest"
	"socle/internal/pg"
	"socle/internal/pgtest"
	"socle/internal/platform"
	"socle/internal/queue"
	"socle/internal/token"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// newMails returns a service that enqueues mails, which the test's server sends.
func newMails(t *testing.T, a *apitest.API) *account.Mails {
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

	return account.NewMails(account.MailConfig{Store: platform.New(pool), Queue: q, Log: log})
}

// waitForJobs waits until n jobs have ended, and returns their states.
func waitForJobs(t *testing.T, m *account.Mails, n int) []string {
	t.Helper()

	deadline := time.After(time.Minute)
	for {
		states, err := pg.Values[string](t.Context(), m.Queue.Pool,
			`select state::text from river.river_job where finalized_at is not null and kind = 'mail' order by id`)
		if err != nil {
			t.Fatal(err)
		}

		if len(states) == n {
			return states
		}

		select {
		case <-deadline:
			t.Fatalf("got states %[2]v, want %[1]d ended jobs", n, states)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// TestMail sends a mail if its transaction commits, with the token of its link, unless the link is
// invalid.
func TestMail(t *testing.T) {
	t.Parallel()

	a := apitest.New(t)
	mails := newMails(t, a)
	store := mails.Store
	user := uuid.NullUUID{UUID: uuid.MustParse(a.User), Valid: true}

	send := func(to string, meanwhile func(tx *platform.Store, link platform.Link) error) platform.Link {
		t.Helper()

		var link platform.Link
		err := store.InTx(t.Context(), func(tx *platform.Store) (err error) {
			link, err = tx.CreateLink(t.Context(), platform.NewLink{
				Purpose: platform.PasswordReset,
				User:    user,
				Email:   to,
				TTL:     time.Hour,
			})
			if err != nil {
				return err
			}

			if err := mails.Send(t.Context(), tx, account.Mail{Template: "password-reset",
				To: to, Data: map[string]string{"username": "Ada"},
				Link: uuid.NullUUID{UUID: link.UUID, Valid: true}}); err != nil {
				return err
			}

			return meanwhile(tx, link)
		})
		if err != nil && !errors.Is(err, errUndone) {
			t.Fatal(err)
		}

		return link
	}

	send("undone@example.com", func(*platform.Store, platform.Link) error { return errUndone })

	send("used@example.com", func(tx *platform.Store, l platform.Link) error {
		_, err := tx.UseLink(t.Context(), l.Purpose, l.UUID)
		return err
	})

	first := send("first@example.com", func(*platform.Store, platform.Link) error { return nil })
	waitForJobs(t, mails, 2)
	second := send("second@example.com", func(*platform.Store, platform.Link) error { return nil })
	waitForJobs(t, mails, 3)

	secret, err := a.Config.LoadSecretKey()
	if err != nil {
		t.Fatal(err)
	}

	key := token.Derive(secret, "one-time links")
	log := a.Log.String()
	for _, l := range []platform.Link{first, second} {
		if want := a.URL + "/reset-password?token=" +
			token.Link(key, platform.PasswordReset, l.UUID); !strings.Contains(log, want) {
			t.Errorf("no mail has the link %s:\n%s", want, log)
		}
	}

	for _, word := range []string{"undone@", "used@"} {
		if strings.Contains(log, word) {
			t.Errorf("unexpected mail to %s", word)
		}
	}

	// The stored job does not contain the token.
	kept, err := pg.Value[string](t.Context(), mails.Queue.Pool,
		`select string_agg(j::text, ' ') || (select string_agg(l::text, ' ') from platform.links l) from river.river_job j`)
	if err != nil || strings.Contains(kept, token.LinkPrefix) {
		t.Errorf("the database stores a token: %v\n%s", err, kept)
	}

	if _, err := store.UseLink(t.Context(), platform.PasswordReset, first.UUID); err == nil {
		t.Error("an outdated link is accepted")
	}
	if _, err := store.UseLink(t.Context(), platform.EmailChange, second.UUID); err == nil {
		t.Error("a link is accepted for another purpose")
	}
	if _, err := store.UseLink(t.Context(), platform.PasswordReset, second.UUID); err != nil {
		t.Error(err)
	}
	if _, err := store.UseLink(t.Context(), platform.PasswordReset, second.UUID); err == nil {
		t.Error("a link is accepted twice")
	}
}

var errUndone = errors.New("undone")

// TestBadMail tests that mails that can never be rendered or sent are not retried.
func TestBadMail(t *testing.T) {
	t.Parallel()

	a := apitest.New(t)
	mails := newMails(t, a)
	store := mails.Store
	for _, m := range []account.Mail{{Template: "absent", To: "a@example.com"},
		{Template: "password-reset", To: "a@example.com"},
		{Template: "password-changed",
			To: "a@example.com\r\nBcc: b@example.com", Data: map[string]string{"username": "x"}}} {
		if err := store.InTx(t.Context(), func(tx *platform.Store) error {
			return mails.Send(t.Context(), tx, m)
		}); err != nil {
			t.Fatal(err)
		}
	}

	for i, state := range waitForJobs(t, mails, 3) {
		if state != "cancelled" {
			t.Errorf("job %d is %s, want cancelled", i, state)
		}
	}

	if err := store.DeleteExpiredLinks(t.Context()); err != nil {
		t.Error(err)
	}
	if err := store.DeleteLinks(t.Context(), uuid.New()); err != nil {
		t.Error(err)
	}
}
