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

const resetLife = time.Hour // of a link to set a new password

// passwordResetArgs is an address that someone gave as theirs. Whether it is anybody's is found out by the job, so
// that the request takes the same time either way.
type passwordResetArgs struct {
	Email string `json:"email"`
}

// Kind names the job.
func (passwordResetArgs) Kind() string { return "password_reset" }

// InsertOpts puts it among the mails.
func (passwordResetArgs) InsertOpts() river.InsertOpts { return Mail{}.InsertOpts() }

// ResetPassword has a link to set a new password sent to whoever has an address, if anybody has it.
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

// Timeout says how long it may take.
func (w *passwordResetWorker) Timeout(*river.Job[passwordResetArgs]) time.Duration { return mailTime }

// Work makes the link and has it sent, to the address that the account has.
func (w *passwordResetWorker) Work(ctx context.Context, job *river.Job[passwordResetArgs]) error {
	return w.store.InTx(ctx, func(tx *platform.Store) error {
		user, _, err := tx.Credentials(ctx, job.Args.Email)
		if fault.Is(err, fault.NotFound) || err == nil && user.Status != "active" {
			return nil
		}
		if err != nil {
			return err
		}

		link, err := tx.CreateLink(ctx, platform.NewLink{Purpose: platform.PasswordReset,
			User:  uuid.NullUUID{UUID: user.UUID, Valid: true},
			Email: user.Email, Life: resetLife})
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
