package job

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"

	"socle/internal/account"
	"socle/internal/pg"
)

// passwordResetArgs contain the requested address. The job looks up the user, so that the request
// takes the same time for known and unknown addresses.
type passwordResetArgs struct {
	Email string `json:"email"`
}

// Kind returns the kind of the job.
func (passwordResetArgs) Kind() string { return "password_reset" }

// InsertOpts returns the options of mails, whose queue it shares.
func (passwordResetArgs) InsertOpts() river.InsertOpts { return mailArgs{}.InsertOpts() }

// EnqueuePasswordReset enqueues within the transaction a mail with a link to set a new password.
func (q *Queue) EnqueuePasswordReset(ctx context.Context, tx pgx.Tx, email string) error {
	_, err := q.client.InsertTx(ctx, tx, passwordResetArgs{Email: email}, nil)
	return pg.Fault(err)
}

type passwordResetWorker struct {
	river.WorkerDefaults[passwordResetArgs]
	accounts *account.Service
}

// Timeout returns the time limit of one attempt.
func (w *passwordResetWorker) Timeout(*river.Job[passwordResetArgs]) time.Duration {
	return mailTimeout
}

// Work creates the link and enqueues its mail.
func (w *passwordResetWorker) Work(ctx context.Context, job *river.Job[passwordResetArgs]) error {
	return w.accounts.MailPasswordReset(ctx, job.Args.Email)
}
