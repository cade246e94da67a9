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
	mailQueue       = "mails"
	mailWorkers     = 4 // per server
	maxMailAttempts = 8 // with River's backoff, the last one 75 minutes after the first
	mailTimeout     = time.Minute
)

// Mail is the job of a mail to send. It contains no secrets, since the queue stores it: the token
// of its link, if any, is derived when the mail is rendered.
type Mail struct {
	Template string            `json:"template"` // of package mail
	To       string            `json:"to"`       // the bare address
	Data     map[string]string `json:"data,omitempty"`
	Link     uuid.NullUUID     `json:"link"`
}

// Kind returns the kind of the job.
func (Mail) Kind() string { return "mail" }

// InsertOpts allows retries, since the mail server can be down for a while.
func (Mail) InsertOpts() river.InsertOpts {
	return river.InsertOpts{Queue: mailQueue, MaxAttempts: maxMailAttempts}
}

// SendMail enqueues a mail within the transaction.
func (q *Queue) SendMail(ctx context.Context, tx *platform.Store, m Mail) error {
	_, err := q.client.InsertTx(ctx, tx.Tx(), m, nil)
	return pg.Fault(err)
}

// pages are the paths of links by purpose, relative to the public URL.
var pages = map[string]string{
	platform.PasswordReset: "/reset-password",
	platform.EmailChange:   "/confirm-email", platform.Invitation: "/accept-invitation",
}

type mailWorker struct {
	river.WorkerDefaults[Mail]
	Config
}

// Timeout returns the time limit of one attempt.
func (w *mailWorker) Timeout(*river.Job[Mail]) time.Duration { return mailTimeout }

// Work sends the mail unless its link has become invalid.
func (w *mailWorker) Work(ctx context.Context, job *river.Job[Mail]) error {
	data := maps.Clone(job.Args.Data)
	if data == nil {
		data = map[string]string{}
	}

	data["server"] = w.PublicURL
	if job.Args.Link.Valid {
		link, err := w.Store.GetLink(ctx, job.Args.Link.UUID)
		if fault.Is(err, fault.NotFound) || (err == nil && !link.Good(time.Now())) {
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

	// River stores the error with the job but does not log it.
	w.Log.Warn("send mail", "template", job.Args.Template, "attempt", job.Attempt, "error", err)

	if errors.Is(err, mail.ErrRefused) {
		return river.JobCancel(err)
	}

	return err
}

// SendInvitation enqueues the mail of an invitation within the transaction. Its link adds the
// recipient to the organization.
func (q *Queue) SendInvitation(ctx context.Context, tx *platform.Store, inviter uuid.UUID, i platform.Invited) error {
	user, err := tx.GetUser(ctx, inviter)
	if err != nil {
		return err
	}

	organization, err := tx.GetOrganization(ctx, i.OrganizationUUID, inviter)
	if err != nil {
		return err
	}

	link, err := tx.CreateLink(ctx, platform.NewLink{Purpose: platform.Invitation,
		Subject: uuid.NullUUID{UUID: i.UUID, Valid: true},
		Email:   i.Email, TTL: platform.InvitationTTL})
	if err != nil {
		return err
	}

	return q.SendMail(ctx, tx, Mail{Template: "invitation",
		To: i.Email, Link: uuid.NullUUID{UUID: link.UUID, Valid: true},
		Data: map[string]string{"organization": organization.Name, "inviter": user.Username, "role": i.RoleID.String(),
			"expires": i.ExpiresAt.UTC().Format("2 January 2006 15:04 " + time.UTC.String())}})
}
