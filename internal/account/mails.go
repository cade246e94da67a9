package account

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/httpx"
	"github.com/socle-dev/socle/internal/mail"
	"github.com/socle-dev/socle/internal/queue"
)

// mailOptions allow retries, since the mail server can be down for a while.
var mailOptions = queue.Options{
	Workers:     queue.Workers{Queue: "mails", PerServer: 8, PerAccount: 2},
	MaxAttempts: 8, // with River's backoff, the last one 75 minutes after the first
	Timeout:     time.Minute,
}

// Mail is the job of a mail to send. It contains no secrets, since the queue stores it: the token
// of its link, if any, is derived when the mail is rendered, see [Service.LinkURL].
type Mail struct {
	Template string            `json:"template"` // template in package mail
	To       string            `json:"to"`       // the bare address
	Data     map[string]string `json:"data,omitempty"`
	Link     uuid.NullUUID     `json:"link"`

	// Project and Share decide whose share of the workers the mail takes: that of the project, else
	// the share of whoever asked for it.
	Project uuid.NullUUID `json:"project"`
	Share   string        `json:"share,omitempty"`
}

// mailShare returns the share of a mail that a request asks for: its account's, or its network's. A
// mail of the server's own counts to its recipient.
func mailShare(ctx context.Context, to string) string {
	if httpx.From(ctx).Client.IsValid() {
		return httpx.Share(ctx).Account
	}

	return "to " + to
}

// Kind returns the job kind.
func (Mail) Kind() string { return "mail" }

// passwordResetArgs contain the requested address. The job looks up the user, so that the request
// takes the same time for known and unknown addresses.
type passwordResetArgs struct {
	Email string `json:"email"`
	Share string `json:"share,omitempty"`
}

// Kind returns the job kind.
func (passwordResetArgs) Kind() string { return "password_reset" }

// registerMails registers the mail workers.
func (s *Service) registerMails() {
	queue.Register(s.Queue, mailOptions, s.sendMail)
	queue.Register(s.Queue, mailOptions, func(ctx context.Context, job *queue.Job[passwordResetArgs]) error {
		return s.mailPasswordReset(ctx, job.Args.Email)
	})
}

// mail enqueues a mail in the transaction.
func (s *Service) mail(ctx context.Context, m Mail) error {
	m.Share = mailShare(ctx, m.To)
	_, err := s.Queue.InsertTx(ctx, s.db.PgxTx(), m)
	return err
}

// sendMail sends a mail unless its link has become invalid.
func (s *Service) sendMail(ctx context.Context, job *queue.Job[Mail]) error {
	data := maps.Clone(job.Args.Data)
	if data == nil {
		data = map[string]string{}
	}

	data["server"] = s.PublicURL
	if job.Args.Link.Valid {
		link, err := s.LinkURL(ctx, job.Args.Link.UUID)
		if err != nil || link == "" {
			return err
		}

		data["link"] = link
	}

	m, err := mail.Render(job.Args.Template, job.Args.To, data)
	if err != nil {
		return queue.Cancel(err)
	}

	m.ID = fmt.Sprintf("%d.%d", job.ID, job.CreatedAt.UnixNano())
	if err = s.Sender.Send(ctx, m); err == nil {
		return nil
	}

	// River stores the error with the job but does not log it.
	s.Log.Warn("send mail", "template", job.Args.Template, "attempt", job.Attempt, "error", err)

	if errors.Is(err, mail.ErrRefused) {
		return queue.Cancel(err)
	}

	return err
}
