// Package account sends the mails of users' accounts, as jobs: it resolves their links, and renders
// and sends them.
package account

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/url"
	"time"

	"github.com/google/uuid"

	"socle/internal/fault"
	"socle/internal/mail"
	"socle/internal/platform"
	"socle/internal/queue"
	"socle/internal/token"
)

// mailOptions allow retries, since the mail server can be down for a while.
var mailOptions = queue.Options{
	Workers:     queue.Workers{Queue: "mails", PerServer: 4},
	MaxAttempts: 8, // with River's backoff, the last one 75 minutes after the first
	Timeout:     time.Minute,
}

// MailConfig configures [Mails].
type MailConfig struct {
	Store     *platform.Store
	Queue     *queue.Queue
	Sender    *mail.Sender
	PublicURL string // without a trailing slash; prefix of links in mails
	LinkKey   []byte // from which the tokens of links are derived
	Log       *slog.Logger
}

// Mails sends mails as jobs.
type Mails struct{ MailConfig }

// NewMails registers the workers of mails.
func NewMails(c MailConfig) *Mails {
	m := &Mails{c}
	queue.Register(c.Queue, mailOptions, m.send)
	queue.Register(c.Queue, mailOptions, m.sendPasswordReset)

	return m
}

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

// Send enqueues a mail within the transaction.
func (m *Mails) Send(ctx context.Context, tx *platform.Store, a Mail) error {
	_, err := m.Queue.InsertTx(ctx, tx.Tx(), a)
	return err
}

// pages are the paths of links by purpose, relative to the public URL.
var pages = map[string]string{
	platform.PasswordReset: "/reset-password",
	platform.EmailChange:   "/confirm-email", platform.Invitation: "/accept-invitation",
}

// send sends a mail unless its link has become invalid.
func (m *Mails) send(ctx context.Context, job *queue.Job[Mail]) error {
	data := maps.Clone(job.Args.Data)
	if data == nil {
		data = map[string]string{}
	}

	data["server"] = m.PublicURL
	if job.Args.Link.Valid {
		link, err := m.Store.GetLink(ctx, job.Args.Link.UUID)
		if fault.Is(err, fault.NotFound) || (err == nil && !link.Good(time.Now())) {
			return nil
		}
		if err != nil {
			return err
		}

		data["link"] = m.PublicURL + pages[link.Purpose] + "?token=" +
			url.QueryEscape(token.Link(m.LinkKey, link.Purpose, link.UUID))
	}

	message, err := mail.Render(job.Args.Template, job.Args.To, data)
	if err != nil {
		return queue.Cancel(err)
	}

	message.ID = fmt.Sprintf("%d.%d", job.ID, job.CreatedAt.UnixNano())
	if err = m.Sender.Send(ctx, message); err == nil {
		return nil
	}

	// River stores the error with the job but does not log it.
	m.Log.Warn("send mail", "template", job.Args.Template, "attempt", job.Attempt, "error", err)

	if errors.Is(err, mail.ErrRefused) {
		return queue.Cancel(err)
	}

	return err
}

// SendInvitation enqueues the mail of an invitation within the transaction. Its link adds the
// recipient to the organization.
func (m *Mails) SendInvitation(ctx context.Context, tx *platform.Store, inviter uuid.UUID, i platform.Invited) error {
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

	return m.Send(ctx, tx, Mail{Template: "invitation",
		To: i.Email, Link: uuid.NullUUID{UUID: link.UUID, Valid: true},
		Data: map[string]string{"organization": organization.Name, "inviter": user.Username, "role": i.RoleID.String(),
			"expires": i.ExpiresAt.UTC().Format("2 January 2006 15:04 " + time.UTC.String())}})
}
