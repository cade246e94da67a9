package job

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"

	"socle/internal/fault"
	"socle/internal/pg"
	"socle/internal/platform"
)

const passwordResetTTL = time.Hour // validity of a link

// passwordResetArgs contain the requested address. The job looks up the user, so that the request
// takes the same time for known and unknown addresses.
type passwordResetArgs struct {
	Email string `json:"email"`
}

// Kind returns the kind of the job.
func (passwordResetArgs) Kind() string { return "password_reset" }

// InsertOpts returns the options of mails, whose queue it shares.
func (passwordResetArgs) InsertOpts() river.InsertOpts { return Mail{}.InsertOpts() }

// ResetPassword enqueues a mail with a link to set a new password. It sends nothing if the address
// is unknown.
func (q *Queue) ResetPassword(ctx context.Context, email string) error {
	return q.Store.InTx(ctx, func(tx *platform.Store) error {
		_, err := q.client.InsertTx(ctx, tx.Tx(), passwordResetArgs{Email: email}, nil)
		return pg.Fault(err)
	})
}

type passwordResetWorker struct {
	river.WorkerDefaults[passwordResetArgs]
	store *platform.Store
}

// Timeout returns the time limit of one attempt.
func (w *passwordResetWorker) Timeout(*river.Job[passwordResetArgs]) time.Duration {
	return mailTimeout
}

// Work creates the link and enqueues its mail, addressed as the user's account has it.
func (w *passwordResetWorker) Work(ctx context.Context, job *river.Job[passwordResetArgs]) error {
	return w.store.InTx(ctx, func(tx *platform.Store) error {
		user, _, err := tx.Credentials(ctx, job.Args.Email)
		if fault.Is(err, fault.NotFound) || (err == nil && user.Status != "active") {
			return nil
		}
		if err != nil {
			return err
		}

		link, err := tx.CreateLink(ctx, platform.NewLink{Purpose: platform.PasswordReset,
			User:  uuid.NullUUID{UUID: user.UUID, Valid: true},
			Email: user.Email, TTL: passwordResetTTL})
		if err != nil {
			return err
		}

		_, err = river.ClientFromContext[pgx.Tx](ctx).
			InsertTx(ctx, tx.Tx(), Mail{Template: "password-reset", To: user.Email,
				Data: map[string]string{"username": user.Username}, Link: uuid.NullUUID{UUID: link.UUID, Valid: true}},
				nil)

		return pg.Fault(err)
	})
}
