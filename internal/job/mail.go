package job

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"

	"socle/internal/account"
	"socle/internal/mail"
	"socle/internal/pg"
)

const (
	mailQueue       = "mails"
	mailWorkers     = 4 // per server
	maxMailAttempts = 8 // with River's backoff, the last one 75 minutes after the first
	mailTimeout     = time.Minute
)

// mailArgs are the arguments of the job that sends a mail.
type mailArgs struct{ account.Mail }

// Kind returns the kind of the job.
func (mailArgs) Kind() string { return "mail" }

// InsertOpts allows retries, since the mail server can be down for a while.
func (mailArgs) InsertOpts() river.InsertOpts {
	return river.InsertOpts{Queue: mailQueue, MaxAttempts: maxMailAttempts}
}

// SendMail enqueues a mail within the transaction.
func (q *Queue) SendMail(ctx context.Context, tx pgx.Tx, m account.Mail) error {
	_, err := q.client.InsertTx(ctx, tx, mailArgs{m}, nil)
	return pg.Fault(err)
}

type mailWorker struct {
	river.WorkerDefaults[mailArgs]
	Config
}

// Timeout returns the time limit of one attempt.
func (w *mailWorker) Timeout(*river.Job[mailArgs]) time.Duration { return mailTimeout }

// Work sends the mail unless its link has become invalid.
func (w *mailWorker) Work(ctx context.Context, job *river.Job[mailArgs]) error {
	data := maps.Clone(job.Args.Data)
	if data == nil {
		data = map[string]string{}
	}

	data["server"] = w.PublicURL
	if job.Args.Link.Valid {
		link, err := w.Accounts.LinkURL(ctx, job.Args.Link.UUID)
		if err != nil || link == "" {
			return err
		}

		data["link"] = link
	}

	m, err := mail.Render(job.Args.Template, job.Args.To, data)
	if err != nil {
		return river.JobCancel(err)
	}

	m.ID = fmt.Sprintf("%d.%d", job.ID, job.CreatedAt.UnixNano())
	if err = w.Mail.Send(ctx, m); err == nil {
		return nil
	}

	// River stores the error with the job but does not log it.
	w.Log.Warn("send mail", "template", job.Args.Template, "attempt", job.Attempt, "error", err)

	if errors.Is(err, mail.ErrRefused) {
		return river.JobCancel(err)
	}

	return err
}
