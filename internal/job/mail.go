package job

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"time"

	"github.com/google/uuid"
	"github.com/riverqueue/river"

	"socle/internal/fault"
	"socle/internal/mail"
	"socle/internal/pg"
	"socle/internal/platform"
	"socle/internal/token"
)

const (
	mailQueue    = "mails"
	mailsAtOnce  = 4 // on one server
	mailAttempts = 8 // River waits longer each time: the last one is an hour and a quarter after the first
	mailTime     = time.Minute
)

// Mail is a mail that is to be sent. Nothing in it is a secret: it is kept with the job. The token of its link, if it has one, is computed
// when it is written.
type Mail struct {
	Template string            `json:"template"` // of package mail
	To       string            `json:"to"`       // the address alone
	Data     map[string]string `json:"data,omitempty"`
	Link     uuid.NullUUID     `json:"link"`
}

// Kind names the job.
func (Mail) Kind() string { return "mail" }

// InsertOpts says that a mail server may be away for a while.
func (Mail) InsertOpts() river.InsertOpts {
	return river.InsertOpts{Queue: mailQueue, MaxAttempts: mailAttempts}
}

// SendMail has a mail sent if the transaction commits.
func (q *Queue) SendMail(ctx context.Context, tx *platform.Store, m Mail) error {
	_, err := q.client.InsertTx(ctx, tx.Tx(), m, nil)
	return pg.Fault(err)
}

// pages are where the links of each purpose lead, behind the public URL.
var pages = map[string]string{
	platform.PasswordReset: "/reset-password",
	platform.EmailChange:   "/confirm-email", platform.Invitation: "/accept-invitation",
}

type mailWorker struct {
	river.WorkerDefaults[Mail]
	Config
}

// Timeout says how long a mail may take.
func (w *mailWorker) Timeout(*river.Job[Mail]) time.Duration { return mailTime }

// Work sends a mail, unless its link has become void meanwhile.
func (w *mailWorker) Work(ctx context.Context, job *river.Job[Mail]) error {
	data := maps.Clone(job.Args.Data)
	if data == nil {
		data = map[string]string{}
	}

	data["server"] = w.PublicURL
	if job.Args.Link.Valid {
		link, err := w.Store.GetLink(ctx, job.Args.Link.UUID)
		if fault.Is(err, fault.NotFound) || err == nil && !link.Good(time.Now()) {
			return nil
		}
		if err != nil {
			return err
		}

		data["link"] = w.PublicURL + pages[link.Purpose] + "?token=" +
			url.QueryEscape(token.Link(w.LinkKey, link.Purpose, link.UUID))
	}

	m, err := mail.Render(job.Args.Template, job.Args.To, data)
	if err != nil {
		return river.JobCancel(err)
	}

	m.ID = fmt.Sprintf("%d.%d", job.ID, job.CreatedAt.UnixNano())
	if err = w.Mail.Send(ctx, m); err == nil {
		return nil
	}

	// River keeps it with the job, and logs it nowhere
	w.Log.Warn("mail", "template", job.Args.Template, "attempt", job.Attempt, "error", err)

	if errors.Is(err, mail.ErrRefused) {
		return river.JobCancel(err)
	}

	return err
}
