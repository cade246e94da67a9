package account

import (
	"context"
	"time"

	"github.com/google/uuid"

	"socle/internal/fault"
	"socle/internal/platform"
	"socle/internal/queue"
)

const passwordResetTTL = time.Hour // validity of a link

// passwordResetArgs contain the requested address. The job looks up the user, so that the request
// takes the same time for known and unknown addresses.
type passwordResetArgs struct {
	Email string `json:"email"`
}

// Kind returns the kind of the job.
func (passwordResetArgs) Kind() string { return "password_reset" }

// ResetPassword enqueues a mail with a link to set a new password. It sends nothing if the address
// is unknown.
func (m *Mails) ResetPassword(ctx context.Context, email string) error {
	return m.Store.InTx(ctx, func(tx *platform.Store) error {
		_, err := m.Queue.InsertTx(ctx, tx.Tx(), passwordResetArgs{Email: email})
		return err
	})
}

// sendPasswordReset creates the link and enqueues its mail, addressed as the user's account has it.
func (m *Mails) sendPasswordReset(ctx context.Context, job *queue.Job[passwordResetArgs]) error {
	return m.Store.InTx(ctx, func(tx *platform.Store) error {
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

		return m.Send(ctx, tx, Mail{Template: "password-reset", To: user.Email,
			Data: map[string]string{"username": user.Username}, Link: uuid.NullUUID{UUID: link.UUID, Valid: true}})
	})
}
